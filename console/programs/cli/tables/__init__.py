"""Every command that is one request, and what the groups of commands are about."""

from console.programs.cli.tables import access, accounts, clusters, money, platform, topics

_TABLES = (clusters, topics, access, accounts, money, platform)

ALL = tuple(row for table in _TABLES for row in table.COMMANDS)
GROUPS = {name: about for table in _TABLES for name, about in table.ABOUT.items()}

"""`manage.py migrate`: Django's, as the role that owns the tables."""

from __future__ import annotations

from django.core.management.base import CommandParser
from django.core.management.commands.migrate import Command as DjangoCommand


class Command(DjangoCommand):
    """The serving role may change no table, so the owner's connection is the default."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Django's arguments, with `--database owner` where none is given."""
        super().add_arguments(parser)
        parser.set_defaults(database="owner")

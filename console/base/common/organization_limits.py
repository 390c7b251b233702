"""Reads the limits of organizations for counters, which know no rows.

The application of limits registers how; without it the settings hold for all organizations.
"""

from __future__ import annotations

from collections.abc import Callable

from console.base.common.conf import config

_read_limit: Callable[[str, str], int] | None = None


def register_organization_limit(read: Callable[[str, str], int]) -> None:
    """Sets the function that reads a limit of an organization, in its tenancy scope.

    It takes the limit's name and the organization's id.
    """
    global _read_limit  # noqa: PLW0603
    _read_limit = read


def limit_of_organization(name: str, organization_id: str) -> int:
    """Returns a limit of an organization, as a process may remember it."""
    read = _read_limit
    return read(name, organization_id) if read else int(getattr(config().limits, name))

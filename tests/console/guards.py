"""The second guard of tenancy, taken away: what querysets forget shows only then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections


@contextmanager
def without_row_security() -> Iterator[None]:
    """Connects as a role that row-level security does not bind. Outside of any transaction."""
    settings = connections["default"].settings_dict
    user = settings["USER"]
    connections["default"].close()
    settings["USER"] = "freshet_unguarded"
    try:
        yield
    finally:
        connections["default"].close()
        settings["USER"] = user

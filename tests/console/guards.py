"""Takes the second guard of tenancy away, so that tests see what querysets alone let through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections


@contextmanager
def without_row_security() -> Iterator[None]:
    """Within the block, connects as a role that row-level security does not bind.

    It reconnects, so it must be entered outside of any transaction.
    """
    settings = connections["default"].settings_dict
    user = settings["USER"]
    connections["default"].close()
    settings["USER"] = "freshet_unguarded"
    try:
        yield
    finally:
        connections["default"].close()
        settings["USER"] = user

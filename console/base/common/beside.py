"""A transaction beside the surrounding one: what must stand whatever becomes of that one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.backends.utils import CursorWrapper

from console.base.common.tenancy import SETTING


@contextmanager
def committed_beside(organization_id: str) -> Iterator[CursorWrapper]:
    """A cursor on a connection of its own, in an organisation's scope. Commits at the end.

    It does not see what the surrounding transaction wrote, and waits for ever for a row that this
    one holds: write rows of your own only. Within the transaction that Django's tests take back it
    is that one, as Django's durable blocks are.
    """
    if any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
        with connection.cursor() as cursor:
            yield cursor
        return
    # The pool may be empty because all of its connections wait here.
    beside = connection.copy()
    beside.settings_dict["OPTIONS"].pop("pool", None)
    try:
        beside.set_autocommit(False)
        with beside.cursor() as cursor:
            cursor.execute("SELECT set_config(%s, %s, true)", [SETTING, organization_id])
            yield cursor
        beside.commit()
    finally:
        beside.close()

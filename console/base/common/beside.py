"""A second transaction for writes that must stay even if the surrounding one is rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.backends.utils import CursorWrapper

from console.base.common.tenancy import SETTING


@contextmanager
def committed_beside(organization_id: str) -> Iterator[CursorWrapper]:
    """Yields a cursor on a separate connection, in an organization's scope; commits at the end.

    The cursor does not see what the surrounding transaction wrote, and would wait for ever for a
    row that this one has locked: write only rows that nothing else touches. In a test whose
    transaction Django rolls back, it is a cursor of that transaction (as with durable blocks).
    """
    if any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
        with connection.cursor() as cursor:
            yield cursor
        return
    # Not from the pool: its connections may all be held by callers that wait here.
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

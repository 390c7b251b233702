"""Locks for longer than a transaction: of a session of PostgreSQL, so that they go with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from console.base.common import locks


@contextmanager
def held(kind: str, name: str) -> Iterator[int | None]:
    """Holds a lock until the end of the block; gives None, or its key if another has it."""
    key = locks.lock_key(kind, name)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        row = cursor.fetchone()
    if not (row and row[0]):
        yield key
        return
    try:
        yield None
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


def holder_of(key: int) -> str:
    """Who holds a lock, for people."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT pid, backend_start FROM pg_locks JOIN pg_stat_activity USING (pid)
               WHERE locktype = 'advisory' AND objsubid = 1
                 AND (classid::bigint << 32 | objid::bigint) = %s AND granted""",
            [key],
        )
        row = cursor.fetchone()
    return f"PostgreSQL's process {row[0]}, since {row[1]:%H:%M:%S}" if row else "another session"

"""Locks that are held for longer than a transaction: PostgreSQL's session locks, which end with
the session, so that a process that dies leaves none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from console.base.common import locks


@contextmanager
def hold_lock(kind: str, name: str) -> Iterator[int | None]:
    """Holds a lock until the end of the block. Yields None if it holds the lock, or the lock's key
    if another session does."""
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
    """The session that holds a lock, in words for people."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT pid, backend_start FROM pg_locks JOIN pg_stat_activity USING (pid)
               WHERE locktype = 'advisory' AND objsubid = 1
                 AND (classid::bigint << 32 | objid::bigint) = %s AND granted""",
            [key],
        )
        row = cursor.fetchone()
    return f"PostgreSQL's process {row[0]}, since {row[1]:%H:%M:%S}" if row else "another session"

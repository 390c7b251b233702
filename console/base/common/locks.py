"""PostgreSQL advisory locks, held until the transaction ends.

A lock is named by a kind and an identifier. Whoever takes several takes them in the order of their
names, or two transactions may wait for each other.
"""

from __future__ import annotations

import hashlib

from django.db import connection


def lock_key(kind: str, name: str) -> int:
    """Returns the 64-bit key of a lock. Locks that share a key by chance only wait needlessly."""
    digest = hashlib.blake2b(f"{kind}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def lock(kind: str, name: str) -> None:
    """Waits until nobody else holds the lock, then holds it until the transaction ends.

    Raises `RuntimeError` outside of a transaction, where the lock would be released at once.
    """
    _require_transaction()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key(kind, name)])


def try_lock(kind: str, name: str) -> bool:
    """Takes the lock if it is free; returns whether it did. Never waits.

    Raises `RuntimeError` outside of a transaction.
    """
    _require_transaction()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock_key(kind, name)])
        row = cursor.fetchone()
    return bool(row and row[0])


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        message = "an advisory lock ends with its transaction, and there is none"
        raise RuntimeError(message)

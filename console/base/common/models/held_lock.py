"""Locks of requests whose transaction is interrupted."""

from __future__ import annotations

from django.db import models


class HeldLock(models.Model):
    """A lock that a request holds while it waits outside of a transaction.

    PostgreSQL's advisory locks end with the transaction; `console.base.common.locks` says how both
    go together. A lock whose request died is free after `until`.
    """

    # The 64-bit key of the lock.
    key = models.BigIntegerField(primary_key=True)
    # The request that holds it.
    holder = models.CharField(max_length=40)
    until = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.key} of {self.holder}"

"""Wrong passwords and codes, counted by what they were tried on."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now


class FailedAttempts(models.Model):
    """How often in a row a proof was wrong for one account, and until when nobody may try again.

    Accounts that do not exist have rows too: they answer like those that do.
    """

    # A keyed digest: the table names no address.
    subject = models.CharField(primary_key=True, max_length=64)
    failures = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(default=now, db_index=True)

    class Meta:
        verbose_name_plural = "failed attempts"

    def __str__(self) -> str:
        return f"{self.failures} for {self.subject}"

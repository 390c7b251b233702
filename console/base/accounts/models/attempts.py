"""Wrong passwords and codes, counted for each account or device that they were tried on."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now


class FailedAttempts(models.Model):
    """How many wrong passwords or codes in a row one subject had, and when the last one was.

    `services/attempts.py` derives the wait from both. Addresses without an account have rows too,
    so that they answer like those with one.
    """

    # A keyed digest of the account, or of the account and a known device.
    subject = models.CharField(primary_key=True, max_length=64)
    failures = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(default=now, db_index=True)

    class Meta:
        verbose_name_plural = "failed attempts"

    def __str__(self) -> str:
        return f"{self.failures} for {self.subject}"

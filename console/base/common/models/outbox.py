"""Tasks that a transaction wants to run, stored with what the transaction changed."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class OutboxEntry(models.Model):
    """One task to hand to Celery. Gone once Celery's broker has it."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "out"), editable=False
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    task = models.CharField(max_length=128)
    # Keyword arguments: ids only.
    arguments = models.JSONField(default=dict)
    # The request that wants it, or `-`.
    request_id = models.CharField(max_length=64, default="-")
    created_at = models.DateTimeField(default=now)
    attempts = models.PositiveIntegerField(default=0)
    # Not before this time: a failed hand-over waits longer each time.
    due_at = models.DateTimeField(default=now, db_index=True)

    class Meta:
        verbose_name_plural = "outbox entries"

    def __str__(self) -> str:
        return f"{self.task} {self.id}"

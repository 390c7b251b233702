"""Tasks to run after a transaction, stored in that transaction."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class OutboxEntry(models.Model):
    """One task to hand to Celery. The row is deleted once Celery's broker has the task."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "out"), editable=False
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    task = models.CharField(max_length=128)
    # The task's keyword arguments: ids only.
    arguments = models.JSONField(default=dict)
    # The id of the request that enqueued it, or `-`.
    request_id = models.CharField(max_length=64, default="-")
    created_at = models.DateTimeField(default=now)
    attempts = models.PositiveIntegerField(default=0)
    # When the sweep hands it over at the earliest; each failed hand-over moves it further away.
    due_at = models.DateTimeField(default=now, db_index=True)

    class Meta:
        verbose_name_plural = "outbox entries"

    def __str__(self) -> str:
        return f"{self.task} {self.id}"

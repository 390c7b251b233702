"""Tasks that wait for their organization's turn, and when an organization had its last one."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

KEY_CHARS_MAX = 256


class WaitingTask(models.Model):
    """A task that waits, or that a worker has taken. The row is deleted once it was done."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "wait"), editable=False
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    task = models.CharField(max_length=128)
    # The task's keyword arguments: ids only.
    arguments = models.JSONField(default=dict)
    # Task and arguments as one text: the same task waits once.
    key = models.CharField(max_length=KEY_CHARS_MAX, unique=True)
    # The id of the request that asked for it first, or `-`.
    request_id = models.CharField(max_length=64, default="-")
    # From when on it may be done.
    due_at = models.DateTimeField(default=now, db_index=True)
    # Until when the worker that took it has it to itself; None while it waits.
    taken_until = models.DateTimeField(null=True, blank=True)
    # The message of Celery with which it did so.
    taken_by = models.CharField(max_length=64, blank=True)
    # Whether it was asked for again since a worker took it.
    again = models.BooleanField(default=False)

    class Meta:
        indexes = (models.Index(fields=["organization_id", "due_at"], name="waiting_of_one"),)

    def __str__(self) -> str:
        return f"{self.task} {self.id}"


class TaskTurn(models.Model):
    """When a worker last took a task of an organization."""

    organization_id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX)
    last_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.organization_id

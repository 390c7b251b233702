"""Runs the tasks in the outbox, as a worker would."""

from __future__ import annotations

from celery import current_app

from console.base.common.models import OutboxEntry
from console.base.common.tenancy import system_scope


def run_outbox() -> list[str]:
    """Runs every stored task, and those that these store; returns the tasks' names in order."""
    current_app.loader.import_default_modules()
    ran = []
    while (entry := _take_entry()) is not None:
        current_app.tasks[entry.task].apply(kwargs=entry.arguments, throw=True)
        ran.append(entry.task)
    return ran


def _take_entry() -> OutboxEntry | None:
    """Removes the oldest entry and returns it; None if there is none."""
    with system_scope():
        entry = OutboxEntry.objects.order_by("created_at", "pk").first()
        if entry is not None:
            OutboxEntry.objects.filter(pk=entry.pk).delete()
        return entry

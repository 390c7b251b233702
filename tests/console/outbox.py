"""Runs what the outbox holds, as a worker would."""

from __future__ import annotations

from celery import current_app

from console.base.common.models import OutboxEntry
from console.base.common.tenancy import system_scope


def run_outbox() -> list[str]:
    """Runs every task that is stored, and those that they store; gives their names in order."""
    current_app.loader.import_default_modules()
    ran = []
    while (entry := _take()) is not None:
        current_app.tasks[entry.task].apply(kwargs=entry.arguments, throw=True)
        ran.append(entry.task)
    return ran


def _take() -> OutboxEntry | None:
    with system_scope():
        entry = OutboxEntry.objects.order_by("created_at", "pk").first()
        if entry is not None:
            OutboxEntry.objects.filter(pk=entry.pk).delete()
        return entry

"""Enqueues tasks in a transaction, so that a task runs if and only if the transaction commits.

The task is first stored as a row of the transaction. After the commit it is handed to Celery's
broker, and the row is deleted; if that fails, or the process dies in between, the sweep hands it
over. So a task runs at least once, and must be safe to repeat.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import current_app
from django.db import transaction

from console.base.common.clock import now
from console.base.common.metrics import HANDED_OVER
from console.base.common.models import OutboxEntry
from console.base.common.requests import current_request_id, in_request
from console.base.common.tenancy import system_scope

logger = logging.getLogger(__name__)

# The sweep leaves an entry of this age to the process that wrote it.
GRACE = timedelta(seconds=5)
RETRY_SECONDS_MAX = 300
SWEEP_ENTRIES_MAX = 500


def enqueue_task(*, task: str, organization_id: str, arguments: dict[str, str]) -> OutboxEntry:
    """Stores a task to run after the surrounding transaction has committed."""
    entry = OutboxEntry.objects.create(
        organization_id=organization_id,
        task=task,
        arguments=arguments,
        request_id=current_request_id(),
        due_at=now() + GRACE,
    )
    # `robust`: the change has committed by then, so a failure here must not fail its answer.
    transaction.on_commit(lambda: dispatch_entry(entry.pk), robust=True)
    return entry


def dispatch_entry(entry_id: str) -> bool:
    """Hands one entry to Celery's broker; returns whether the broker has it.

    Never raises for a failure of the broker: the caller's change has committed and must be answered
    as a success, and the sweep tries this entry again and goes on with the next ones.
    """
    with system_scope():
        entry = OutboxEntry.objects.select_for_update(skip_locked=True).filter(pk=entry_id).first()
        if entry is None:
            return False
        try:
            with in_request(entry.request_id):
                current_app.send_task(
                    entry.task, kwargs=entry.arguments, task_id=entry.pk, retry=False
                )
        # Any error: a Redis whose disk is full, for example, answers with an error of its own kind.
        except Exception as error:
            entry.attempts += 1
            wait_s = min(2**entry.attempts, RETRY_SECONDS_MAX)
            entry.due_at = now() + timedelta(seconds=wait_s)
            entry.save(update_fields=["attempts", "due_at"])
            HANDED_OVER.labels("broker_away").inc()
            logger.warning("outbox.broker_away entry=%s error=%s", entry.pk, error)
            return False
        entry.delete()
        HANDED_OVER.labels("taken").inc()
        return True


def sweep_outbox() -> int:
    """Hands over the entries that are due; returns how many the broker accepted."""
    with system_scope():
        due = list(
            OutboxEntry.objects.filter(due_at__lte=now())
            .order_by("due_at")
            .values_list("pk", flat=True)[:SWEEP_ENTRIES_MAX]
        )
    return sum(dispatch_entry(entry_id) for entry_id in due)

"""Enqueues tasks in a transaction, so that a task runs if and only if the transaction commits.

The task is first stored as a row of the transaction. After the commit it is handed to Celery's
broker, or waits for its organization's turn (`queued.py`), and the row is deleted; if that fails,
or the process dies in between, the sweep hands it over. So a task runs at least once, and must be
safe to repeat.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from celery import current_app
from django.db import transaction

from console.base.common.clock import now
from console.base.common.metrics import HANDED_OVER
from console.base.common.models import OutboxEntry
from console.base.common.queued import wait_for_turn, waits_in_turns
from console.base.common.requests import current_request_id, in_request
from console.base.common.tenancy import system_scope
from console.base.common.transactions import outside_transaction

logger = logging.getLogger(__name__)

# The sweep leaves an entry of this age to the process that wrote it.
GRACE = timedelta(seconds=5)
RETRY_SECONDS_MAX = 300
# How long one process has an entry to itself: longer than the queue takes to answer.
CLAIMED = timedelta(seconds=10)
SWEEP_ENTRIES_MAX = 500
# A sweep ends after this time, so that the worker is free; the next one goes on.
SWEEP_S_MAX = 20.0


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
    """Hands one entry over; returns whether that was done.

    Never raises for a failure of the broker: the caller's change has committed and must be answered
    as a success, and the sweep tries this entry again and goes on with the next ones.
    """
    entry = _claim_entry(entry_id)
    if entry is None:
        return False
    try:
        _hand_over(entry)
    # Any error: a Redis whose disk is full, for example, answers with an error of its own kind.
    except Exception as error:
        entry.attempts += 1
        wait_s = min(2**entry.attempts, RETRY_SECONDS_MAX)
        entry.due_at = now() + timedelta(seconds=wait_s)
        with system_scope():
            entries = OutboxEntry.objects.filter(pk=entry_id)
            entries.update(attempts=entry.attempts, due_at=entry.due_at)
        HANDED_OVER.labels("broker_away").inc()
        logger.warning("outbox.broker_away entry=%s error=%s", entry.pk, error)
        return False
    with system_scope():
        entry.delete()
    HANDED_OVER.labels("taken").inc()
    return True


def _hand_over(entry: OutboxEntry) -> None:
    if waits_in_turns(entry.task):
        wait_for_turn(
            task=entry.task,
            organization_id=entry.organization_id,
            arguments=entry.arguments,
            request_id=entry.request_id,
        )
        return
    with in_request(entry.request_id), outside_transaction("the queue"):
        current_app.send_task(entry.task, kwargs=entry.arguments, task_id=entry.pk, retry=False)


def _claim_entry(entry_id: str) -> OutboxEntry | None:
    """An entry that this process alone hands over for `CLAIMED`; None where another one does.

    Its row is not locked meanwhile, as the queue may take its time.
    """
    with system_scope():
        entries = OutboxEntry.objects.filter(pk=entry_id)
        entry = entries.first()
        if entry is None:
            return None
        until = now() + CLAIMED
        return entry if entries.filter(due_at=entry.due_at).update(due_at=until) else None


def sweep_outbox() -> int:
    """Hands over entries that are due, for a while; returns how many the broker accepted."""
    with system_scope():
        due = list(
            OutboxEntry.objects.filter(due_at__lte=now())
            .order_by("due_at")
            .values_list("pk", flat=True)[:SWEEP_ENTRIES_MAX]
        )
    deadline, handed_over = time.monotonic() + SWEEP_S_MAX, 0
    for entry_id in due:
        if time.monotonic() > deadline:
            break
        handed_over += dispatch_entry(entry_id)
    return handed_over

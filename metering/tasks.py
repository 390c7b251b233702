"""Celery tasks: each calls one service of its name."""

from __future__ import annotations

from celery import shared_task

from metering.services import ingest, pruning, reconciliation, rollup

# Far longer than any roll-up; a queue that hands the task out again meanwhile finds it locked.
ROLLUP_S = 6 * 3600


@shared_task(name="metering.ingest_usage")
def ingest_usage() -> None:
    """Takes new usage files into the provisional minutes."""
    ingest.ingest_usage()


@shared_task(name="metering.roll_up_recent_days", time_limit=ROLLUP_S)
def roll_up_recent_days() -> None:
    """Rolls up what is due, compares with the log what is rolled up, and removes what is old."""
    rollup.roll_up_recent_days()
    reconciliation.reconcile_recent_days()
    pruning.prune()

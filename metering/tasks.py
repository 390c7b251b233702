"""Celery tasks of metering. Each calls the service of its name."""

from __future__ import annotations

from celery import shared_task

from console.base.common.concurrency import only_one
from metering.services import compacting, comparing, ingest, pruning, reconciliation, rollup

# Far longer than any roll-up takes. Where the queue delivers the task again meanwhile, the days'
# locks keep the second one out.
ROLLUP_S = 6 * 3600
# Somewhat longer than a pass. After so long one that died keeps no other from beginning.
INGEST_S = 75.0


@shared_task(name="metering.ingest_usage")
def ingest_usage() -> None:
    """Takes new usage files into the provisional minutes.

    Where another worker does so at this moment, it reads no file in vain.
    """
    with only_one("ingest_usage", lasts_s=INGEST_S) as place:
        if place is not None:
            ingest.ingest_usage()


@shared_task(name="metering.roll_up_recent_days", time_limit=ROLLUP_S)
def roll_up_recent_days() -> None:
    """Rolls up the days that are due, compares them with the log and the running totals with them,
    joins small usage files, and removes what is old.

    In this order: a day is compared once it is rolled up, and joined once it is published.
    """
    rollup.roll_up_recent_days()
    reconciliation.reconcile_recent_days()
    comparing.check_running_totals()
    compacting.compact_past_days()
    pruning.prune_usage()

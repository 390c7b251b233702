"""Removes what nobody needs any more: folders of old runs, old usage files, and rows about these.

Published rows, runs and comparisons stay.
"""

from __future__ import annotations

import logging
from datetime import date, timedelta

from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import HoursIn, RunState
from metering.events.keys import cell_prefix, day_prefix, log_prefix
from metering.events.store import RemovingStore
from metering.models import (
    FileCoverage,
    Reconciliation,
    RollupPointer,
    RollupRun,
    UsageFile,
)
from metering.periods import FILES_KEPT, to_ms
from metering.services.ingest import usage_store
from metering.services.run_folders import parse_folder, run_store

logger = logging.getLogger(__name__)

# Longer than a month stays open. The runs' reports stay in PostgreSQL.
FOLDERS_KEPT = timedelta(days=45)
# Several times as many as eight agents write in a day.
FILES_A_PASS = 50_000


def prune_usage() -> tuple[int, int]:
    """Removes what is old; returns how many (folders, files). It may be interrupted anywhere."""
    folders, files = prune_folders(), prune_files()
    if folders or files:
        logger.info("usage.pruned", extra={"folders": folders, "files": files})
    return folders, files


def prune_folders() -> int:
    """Removes folders of runs that ended long ago; returns how many.

    It keeps those with conflicting rows, and for 25 months those that have the hours of their day.
    """
    last, store = now() - FOLDERS_KEPT, run_store()
    folders = sorted({folder for key in store.list("day=") if (folder := parse_folder(key))})
    old = [folder for folder in folders if folder.day < last.date()]
    kept_from = (now() - FILES_KEPT).date()
    with_hours = RollupPointer.objects.filter(day__gte=kept_from, run__hours_in=HoursIn.FILES)
    needed = set(with_hours.values_list("run_id", flat=True))
    done_with = [
        folder for folder in old if folder.run_id not in needed and _is_done_with(folder.run_id)
    ]
    for folder in done_with:
        store.remove(f"{folder.key}/")
    return len(done_with)


def prune_files() -> int:
    """Removes old usage files and statements of the log, and a bounded number of rows about these
    files; returns of how many."""
    before = now() - FILES_KEPT
    _remove_days(before.date())
    before_ms = to_ms(before)
    with system_scope():
        old = UsageFile.objects.filter(cell=config().cell.id, emitted_at_ms__lt=before_ms)
        keys = list(old.order_by("emitted_at_ms").values_list("pk", flat=True)[:FILES_A_PASS])
        FileCoverage.objects.filter(file__in=keys).delete()
        UsageFile.objects.filter(pk__in=keys).delete()
    return len(keys)


def _remove_days(before: date) -> None:
    """Removes what agents wrote on days before this one, whether it was ever taken in or not."""
    store, cell = usage_store(), config().cell.id
    # Keys begin with their day, so that each look finds the oldest day that is left.
    while (day := _first_day_below(store, f"{cell_prefix(cell)}day=", before)) is not None:
        store.remove(day_prefix(cell, day))
    while (day := _first_day_below(store, f"{cell_prefix(cell)}log/day=", before)) is not None:
        store.remove(log_prefix(cell, day))


def _first_day_below(store: RemovingStore, prefix: str, before: date) -> date | None:
    for key in store.list(prefix):
        day = date.fromisoformat(key.removeprefix(prefix)[:10])
        return day if day < before else None
    return None


def _is_done_with(run_id: str) -> bool:
    """Whether a run ended long ago, and its folder holds nothing that a person should look at."""
    last = now() - FOLDERS_KEPT
    run = RollupRun.objects.filter(pk=run_id).first()
    if run is not None:
        over = run.state != RunState.RUNNING and run.created_at < last
        return over and not run.report.get("conflicts")
    compared = Reconciliation.objects.filter(pk=run_id).first()
    # A folder without a row is from before the database was restored from a backup.
    return compared is None or (compared.state != RunState.RUNNING and compared.created_at < last)

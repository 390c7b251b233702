"""Removes what nobody needs any more: folders of old runs, and rows about old usage files.

Published rows, runs, comparisons and usage files themselves stay.
"""

from __future__ import annotations

import logging
import re
import shutil
from datetime import date, timedelta
from pathlib import Path

from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import RunState
from metering.models import FileCoverage, Reconciliation, RollupRun, UsageFile
from metering.periods import to_ms

logger = logging.getLogger(__name__)

# Longer than a month stays open. The runs' reports stay in PostgreSQL.
FOLDERS_KEPT = timedelta(days=45)
# As long as usage files are kept. Until then a row can be traced to its files and lanes.
FILES_KEPT = timedelta(days=770)
FILES_A_PASS = 5_000
DAY_FOLDER = re.compile(r"day=(\d{4}-\d{2}-\d{2})")


def prune_usage() -> tuple[int, int]:
    """Removes what is old; returns how many (folders, files). It may be interrupted anywhere."""
    folders, files = prune_folders(), prune_files()
    if folders or files:
        logger.info("usage.pruned", extra={"folders": folders, "files": files})
    return folders, files


def prune_folders() -> int:
    """Removes folders of runs that ended long ago, except those with conflicting rows.

    Returns how many.
    """
    last = now() - FOLDERS_KEPT
    removed = 0
    for folder in sorted(config().usage.rollups.glob("day=*")):
        match = DAY_FOLDER.fullmatch(folder.name)
        if match is None or date.fromisoformat(match[1]) >= last.date():
            continue
        for run in sorted(folder.glob("run_id=*")):
            if _is_done_with(run.name.removeprefix("run_id=")):
                shutil.rmtree(run)
                removed += 1
        _remove_if_empty(folder)
    return removed


def prune_files() -> int:
    """Removes rows of old usage files and their coverage, a bounded number at a time; returns how
    many files."""
    before_ms = to_ms(now() - FILES_KEPT)
    with system_scope():
        old = UsageFile.objects.filter(cell=config().cell.id, emitted_at_ms__lt=before_ms)
        keys = list(old.order_by("emitted_at_ms").values_list("pk", flat=True)[:FILES_A_PASS])
        FileCoverage.objects.filter(file__in=keys).delete()
        UsageFile.objects.filter(pk__in=keys).delete()
    return len(keys)


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


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()

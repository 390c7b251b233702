"""Stores results about the quality of a roll-up's data, for staff to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from console.base.common.tenancy import system_scope
from metering.choices import FileState, QualityKind
from metering.models import JudgedHour, QualityResult, RollupRun, UsageFile
from metering.periods import DAY, day_start

# The number of conflicting rows that are stored; all of them are in the run's folder.
CONFLICTS_SHOWN = 100
SHOWN = (
    *("cluster_id", "incarnation", "block", "topic_id", "partition", "principal", "meter"),
    *("window_start_ms", "quantity", "reason"),
)


def note_quality(run: RollupRun, report: dict[str, Any], quarantine: Path | None) -> None:
    """Stores the checks, conflicts, damaged inputs and incomplete hours of a run.

    `quarantine` is the folder of the job's conflicting rows; None where there is none.
    """
    with system_scope():
        QualityResult.objects.bulk_create(_results(run, report, quarantine))


def _results(
    run: RollupRun, report: dict[str, Any], quarantine: Path | None
) -> Iterator[QualityResult]:
    for check in report.get("checks", ()):
        yield QualityResult(
            run=run,
            kind=QualityKind.CHECK,
            name=check["name"],
            passed=check["passed"],
            detail={"detail": str(check["detail"])},
        )
    if report.get("conflicts"):
        yield QualityResult(
            run=run,
            kind=QualityKind.CONFLICT,
            name="conflicts",
            passed=False,
            detail={"identities": report["conflicts"], "rows": _conflicting_rows(quarantine)},
        )
    for damaged in report.get("damaged_inputs", ()):
        yield _damaged_input(
            run, damaged["key"], {"reason": damaged["reason"], "detail": damaged["detail"]}
        )
    # The manifests of these files cannot be read, so nobody knows which days they are of. They may
    # be of the day on which they were emitted or the day before.
    unread = UsageFile.objects.filter(
        cell=run.cell, state=FileState.DAMAGED, sha256="", day__in=[run.day, run.day + DAY]
    )
    for file in unread.order_by("key"):
        yield _damaged_input(run, file.key, {"reason": "manifest", "detail": file.error})
    start = day_start(run.day)
    hours = JudgedHour.objects.filter(hour__gte=start, hour__lt=start + DAY, complete=False)
    for hour in hours.order_by("cluster_id", "hour"):
        yield QualityResult(
            run=run,
            kind=QualityKind.INCOMPLETE_HOUR,
            name=f"{hour.cluster_id} {hour.hour.isoformat()}",
            passed=False,
            detail={"reason": hour.reason},
        )


def _damaged_input(run: RollupRun, key: str, detail: dict[str, Any]) -> QualityResult:
    kind = QualityKind.DAMAGED_INPUT
    return QualityResult(run=run, kind=kind, name=key, passed=False, detail=detail)


def _conflicting_rows(quarantine: Path | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for file in sorted(quarantine.glob("*.parquet")) if quarantine else ():
        table = pq.read_table(file, columns=list(SHOWN))
        rows += table.slice(0, CONFLICTS_SHOWN - len(rows)).to_pylist()
        if len(rows) >= CONFLICTS_SHOWN:
            break
    return rows

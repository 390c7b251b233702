"""The state of the meter, for staff and for probes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import FileState, RunState
from metering.models import (
    IngestState,
    JudgedHour,
    Reconciliation,
    RollupPointer,
    TotalsCheck,
    UsageFile,
)
from metering.periods import DAY, HOUR, from_ms
from metering.services.progress import RunningJob, running_jobs
from metering.services.totals import first_day

# At most this many of each kind are shown.
SHOWN = 50
# The current hour and the one before it are never complete yet.
NATURAL = 2 * HOUR


@dataclass(frozen=True, slots=True)
class MeterStatus:
    """The state of the meter of a cell."""

    cell: str
    # When the last pass ended; None before the first.
    ran_at: datetime | None
    # The age of the newest usage file that was taken in; None before the first.
    lag: timedelta | None
    # (key, reason) of damaged files.
    damaged: list[tuple[str, str]] = field(default_factory=list)
    # (cluster id, hour, reason) of hours that should be complete by now.
    incomplete: list[tuple[str, datetime, str]] = field(default_factory=list)
    # Past days without a roll-up.
    missing_days: list[date] = field(default_factory=list)
    # The newest day that was compared with the log; None before the first.
    compared: date | None = None
    # (day, failed checks) of days whose newest comparison did not pass.
    differing: list[tuple[date, str]] = field(default_factory=list)
    # What the newest check of running totals found: when, how many differ, and the first of them.
    totals_checked: datetime | None = None
    totals_differing: int = 0
    totals_differences: list[str] = field(default_factory=list)
    # Roll-ups and comparisons that run.
    running: list[RunningJob] = field(default_factory=list)


def meter_status() -> MeterStatus:
    """Reads the state of this control plane's cell, over all organizations."""
    cell, at = config().cell.id, now()
    ran_at, lag = ingest_lag(cell, at)
    damaged = UsageFile.objects.filter(cell=cell, state=FileState.DAMAGED).order_by("key")
    with system_scope():
        hours = JudgedHour.objects.filter(complete=False, hour__lt=at - NATURAL)
        rows = hours.order_by("hour", "cluster_id").values_list("cluster_id", "hour", "reason")
        incomplete = list(rows[:SHOWN])
    days = _compared_days(cell)
    check = TotalsCheck.objects.filter(cell=cell).order_by("-checked_at").first()
    return MeterStatus(
        cell=cell,
        ran_at=ran_at,
        lag=lag,
        damaged=list(damaged.values_list("key", "error")[:SHOWN]),
        incomplete=incomplete,
        missing_days=_missing_days(cell, at.date()),
        compared=max(days, default=None),
        differing=[
            (day, _differences(comparison))
            for day, comparison in days.items()
            if not comparison.passed
        ],
        totals_checked=check.checked_at if check else None,
        totals_differing=check.differing if check else 0,
        totals_differences=check.differences if check else [],
        running=running_jobs(cell),
    )


def what_differs() -> tuple[bool, list[date]]:
    """Whether running totals differ by their newest check, and the days that differ from the log by
    their newest comparison, oldest first.
    """
    cell = config().cell.id
    check = TotalsCheck.objects.filter(cell=cell).order_by("-checked_at").first()
    days = [day for day, comparison in _compared_days(cell).items() if comparison.passed is False]
    return bool(check and check.differing), sorted(days)


def ingest_lag(cell: str, at: datetime) -> tuple[datetime | None, timedelta | None]:
    """When the last ingest pass ended, and the age of the newest file that was taken in."""
    state = IngestState.objects.filter(cell=cell).first()
    if state is None:
        return None, None
    newest = state.newest_emitted_at_ms
    return state.ran_at, at - from_ms(newest) if newest else None


def _compared_days(cell: str) -> dict[date, Reconciliation]:
    """The newest comparison of each of the last days, the newest day first."""
    comparisons = Reconciliation.objects.filter(cell=cell, state=RunState.DONE)
    newest = comparisons.order_by("-day", "-created_at").distinct("day")
    return {comparison.day: comparison for comparison in newest[:SHOWN]}


def _differences(reconciliation: Reconciliation) -> str:
    failed = reconciliation.failed_checks.items()
    return "; ".join(f"{name}: {detail}" for name, detail in failed)


def _missing_days(cell: str, today: date) -> list[date]:
    day = first_day(cell)
    if day is None:
        return []
    pointers = RollupPointer.objects.final().filter(cell=cell)
    published = set(pointers.values_list("day", flat=True))
    missing = []
    while day < today:
        if day not in published:
            missing.append(day)
        day += DAY
    return missing

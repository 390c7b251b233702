"""How far the meter is, for staff and for probes."""

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
    UsageFile,
)
from metering.periods import DAY, HOUR, from_ms
from metering.services.totals import first_day

# Of what is missing, so much is shown.
SHOWN = 50
# The hour that runs, and the one before it, are incomplete by nature.
NATURAL = 2 * HOUR


@dataclass(frozen=True, slots=True)
class MeterStatus:
    """What the meter knows of itself."""

    cell: str
    # When the last pass ended; None before the first.
    ran_at: datetime | None
    # How old the newest file is that was taken in; None before the first.
    lag: timedelta | None
    # Keys, and why.
    damaged: list[tuple[str, str]] = field(default_factory=list)
    # Clusters and hours that should be complete by now, and why they are not.
    incomplete: list[tuple[str, datetime, str]] = field(default_factory=list)
    # Days that are over and have no roll-up.
    missing_days: list[date] = field(default_factory=list)
    # The last day that was compared with the log; None before the first.
    compared: date | None = None
    # Days whose newest comparison found a difference, or could not compare everything.
    differing: list[tuple[date, str]] = field(default_factory=list)


def meter_status() -> MeterStatus:
    """Reads all of it, of every organisation."""
    cell, at = config().cell.id, now()
    ran_at, lag = ingest_lag(cell, at)
    damaged = UsageFile.objects.filter(cell=cell, state=FileState.DAMAGED).order_by("key")
    with system_scope():
        hours = JudgedHour.objects.filter(complete=False, hour__lt=at - NATURAL)
        found = hours.order_by("hour", "cluster_id").values_list("cluster_id", "hour", "reason")
        incomplete = list(found[:SHOWN])
    days = _compared_days(cell)
    return MeterStatus(
        cell=cell,
        ran_at=ran_at,
        lag=lag,
        damaged=list(damaged.values_list("key", "error")[:SHOWN]),
        incomplete=incomplete,
        missing_days=_missing_days(cell, at.date()),
        compared=max(days, default=None),
        differing=[(day, _differences(each)) for day, each in days.items() if not each.passed],
    )


def ingest_lag(cell: str, at: datetime) -> tuple[datetime | None, timedelta | None]:
    """When the last pass ended, and how old the newest file is that was taken in."""
    state = IngestState.objects.filter(cell=cell).first()
    if state is None:
        return None, None
    newest = state.newest_emitted_at_ms
    return state.ran_at, at - from_ms(newest) if newest else None


def _compared_days(cell: str) -> dict[date, Reconciliation]:
    """The newest comparison of each of the last days, newest first."""
    found = Reconciliation.objects.filter(cell=cell, state=RunState.DONE)
    newest = found.order_by("-day", "-created_at").distinct("day")
    return {each.day: each for each in newest[:SHOWN]}


def _differences(reconciliation: Reconciliation) -> str:
    failed = reconciliation.failed_checks.items()
    return "; ".join(f"{name}: {detail}" for name, detail in failed)


def _missing_days(cell: str, today: date) -> list[date]:
    day = first_day(cell)
    if day is None:
        return []
    published = set(RollupPointer.objects.filter(cell=cell).values_list("day", flat=True))
    missing = []
    while day < today:
        if day not in published:
            missing.append(day)
        day += DAY
    return missing

"""What billing reads of usage.

Each function reads in the caller's tenancy scope: an organisation's, or the system's for all.
Quantities are whole numbers of the meter's unit; months are UTC, named by any day in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db import connection
from django.db.models import Max, Min, Sum

from console.base.common.conf import config
from metering.choices import Granularity, RunState
from metering.models import (
    ClusterCoverage,
    JudgedHour,
    RollupPointer,
    RollupRun,
    UsageFile,
    UsageRow,
)
from metering.periods import (
    DAY,
    HOUR,
    day_start,
    days_of_month,
    from_ms,
    month_span,
    month_start,
    to_ms,
)
from metering.querysets import UsageRowQuerySet

ROWS_A_FETCH = 2_000
SO_FAR = """
SELECT cluster_id, meter, sum(quantity) FROM (
    SELECT cluster_id, meter, quantity FROM metering_usagerow
    WHERE organization_id = %(organization)s AND granularity = 'day' AND billed
        AND window_start >= %(start)s AND window_start < %(end)s
        AND run_id IN (SELECT run_id FROM metering_rolluppointer WHERE cell = %(cell)s)
    UNION ALL
    SELECT cluster_id, meter, quantity FROM metering_provisionalminute
    WHERE organization_id = %(organization)s AND billed
        AND minute >= %(start)s AND minute < %(end)s
        AND NOT EXISTS (
            SELECT FROM metering_rolluppointer AS pointer WHERE pointer.cell = %(cell)s
                AND pointer.day = (minute AT TIME ZONE 'UTC')::date
        )
) AS used GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class BillableTotal:
    """What one cluster used of one meter in a month, as published and billed."""

    organization_id: str
    cluster_id: str
    meter: str
    quantity: int
    month: date

    def row_ids(self) -> list[str]:
        """Ids of the rows that it is the sum of."""
        return usage_row_ids(self.organization_id, self.cluster_id, self.meter, self.month)


@dataclass(frozen=True, slots=True)
class IncompleteHour:
    """An hour of which something is missing, and what."""

    cluster_id: str
    hour: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class MonthCompleteness:
    """Whether a month can be closed, and what speaks against it."""

    complete: bool
    # Days without a published roll-up.
    missing_days: list[date]
    # Days whose roll-up is older than some of their usage files.
    stale_days: list[date]
    incomplete_hours: list[IncompleteHour]


@dataclass(frozen=True, slots=True)
class UsageFileRef:
    """A usage file as a roll-up took it."""

    key: str
    size_bytes: int
    sha256: str
    rows: int


def billable_totals(month: date, organization_id: str | None = None) -> Iterator[BillableTotal]:
    """Totals of the published, billed days of a month, in the order of organisations.

    Streamed: to be read within one transaction (a scope is one).
    """
    found = (
        _billed_days(month, organization_id)
        .values_list("organization_id", "cluster_id", "meter")
        .annotate(total=Sum("quantity"))
        .order_by("organization_id", "cluster_id", "meter")
    )
    for owner, cluster_id, meter, total in found.iterator(chunk_size=ROWS_A_FETCH):
        yield BillableTotal(owner, cluster_id, meter, int(total), month_start(month))


def usage_row_ids(organization_id: str, cluster_id: str, meter: str, month: date) -> list[str]:
    """Ids of the rows behind one of the `billable_totals`, by time."""
    rows = _billed_days(month, organization_id).filter(cluster_id=cluster_id, meter=meter)
    return list(rows.order_by("window_start", "id").values_list("pk", flat=True))


def month_completeness(
    month: date, organization_id: str | None = None, *, clusters: Collection[str] = ()
) -> MonthCompleteness:
    """Whether everything of a month is published and complete.

    `clusters` names those that the meter must have heard of. To look at many organisations, ask
    once without one.
    """
    start, end = month_span(month)
    pointers = _current_runs(start.date(), end.date())
    first = min([*pointers, *filter(None, [first_day(config().cell.id)])], default=start.date())
    # Before the first day of all there was nothing to roll up.
    missing = [day for day in days_of_month(month) if day not in pointers and day >= first]
    stale = [day for day, run in pointers.items() if has_grown(day, run)]
    hours = [
        *_incomplete_hours(start, end, organization_id),
        *_unheard(start, clusters),
    ]
    return MonthCompleteness(
        complete=not (missing or stale or hours),
        missing_days=missing,
        stale_days=sorted(stale),
        incomplete_hours=sorted(hours, key=lambda each: (each.hour, each.cluster_id)),
    )


def provisional_month_totals(organization_id: str, month: date) -> dict[tuple[str, str], int]:
    """(cluster, meter) → billed quantity so far: published days, and minutes of the other days.

    One statement: a day that is published at this moment counts once.
    """
    start, end = month_span(month)
    parameters: dict[str, Any] = {
        "organization": organization_id,
        "cell": config().cell.id,
        "start": start,
        "end": end,
    }
    with connection.cursor() as cursor:
        cursor.execute(SO_FAR, parameters)
        return {(cluster, meter): int(total) for cluster, meter, total in cursor.fetchall()}


def rollup_inputs(run_ids: Iterable[str]) -> list[UsageFileRef]:
    """The usage files that runs were made from, each once, by key."""
    found = {}
    for inputs in RollupRun.objects.filter(pk__in=list(run_ids)).values_list("inputs", flat=True):
        for each in inputs:
            found[each["key"]] = UsageFileRef(**each)
    return [found[key] for key in sorted(found)]


def metered_until(cluster_id: str) -> datetime | None:
    """The first hour of a cluster of which something may be missing.

    None where the meter never heard of it; of a cluster that is gone and metered to its end, the
    end of its last hour.
    """
    hours = JudgedHour.objects.filter(cluster_id=cluster_id)
    found: datetime | None = hours.filter(complete=False).aggregate(first=Min("hour"))["first"]
    if found is not None:
        return found
    last: datetime | None = hours.aggregate(last=Max("hour"))["last"]
    return None if last is None else last + HOUR


def is_metered(*, cluster_id: str, until: datetime) -> bool:
    """Whether all that a cluster used up to a time is in usage files.

    Not of one that no usage file ever told of: the agent, once it runs, tells of every cluster.
    """
    known = metered_until(cluster_id)
    return known is not None and known >= until


def has_grown(day: date, run: RollupRun) -> bool:
    """Whether there are usage files of a day that neither its run nor a later one has seen.

    A later one may have found the same rows in more files.
    """
    good = RollupRun.objects.filter(
        cell=run.cell, day=day, state__in=[RunState.PUBLISHED, RunState.UNCHANGED]
    )
    seen = good.order_by("-created_at").values_list("inputs_sha256", flat=True).first()
    return inputs_sha256(files_of_day(run.cell, day)) != seen


def first_day(cell: str) -> date | None:
    """The first day that a usage file has rows of."""
    start: int | None = UsageFile.objects.filter(cell=cell).aggregate(first=Min("window_start_ms"))[
        "first"
    ]
    return None if start is None else from_ms(start).date()


def files_of_day(cell: str, day: date) -> list[UsageFileRef]:
    """Usage files with rows of a day, by key; damaged ones too, whose manifests can be read."""
    return files_between(cell, to_ms(day_start(day)), to_ms(day_start(day) + DAY))


def files_between(cell: str, since_ms: int, until_ms: int) -> list[UsageFileRef]:
    """Usage files with rows of [since, until), by key; damaged ones too, if their manifest reads.

    Times are milliseconds since 1970.
    """
    found = UsageFile.objects.filter(
        cell=cell, window_end_ms__gt=since_ms, window_start_ms__lt=until_ms
    )
    fields = ("key", "size_bytes", "sha256", "rows")
    return [UsageFileRef(*each) for each in found.order_by("key").values_list(*fields)]


def inputs_sha256(files: Iterable[UsageFileRef]) -> str:
    """One hash for a set of files, of their keys and hashes."""
    lines = sorted(f"{file.key} {file.sha256}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _billed_days(month: date, organization_id: str | None) -> UsageRowQuerySet:
    start, end = month_span(month)
    rows = UsageRow.objects.all().current().billed().within(start, end)
    # Named here, for the index that holds exactly these.
    rows = rows.filter(granularity=Granularity.DAY.value)
    return rows if organization_id is None else rows.for_organization(organization_id)


def _current_runs(first: date, end: date) -> dict[date, RollupRun]:
    """The current run of each day in [first, end) that has one."""
    pointers = RollupPointer.objects.filter(cell=config().cell.id, day__gte=first, day__lt=end)
    return {
        pointer.day: pointer.run
        for pointer in pointers.select_related("run")
        .defer("run__inputs", "run__report")
        .order_by("day")
    }


def _incomplete_hours(
    start: datetime, end: datetime, organization_id: str | None
) -> Iterator[IncompleteHour]:
    rows = JudgedHour.objects.filter(hour__gte=start, hour__lt=end, complete=False)
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    for cluster_id, hour, reason in rows.values_list("cluster_id", "hour", "reason"):
        yield IncompleteHour(cluster_id, hour, reason)


def _unheard(start: datetime, clusters: Collection[str]) -> Iterator[IncompleteHour]:
    """Clusters that no usage file speaks of. (Behind the last that is known of one there always is
    an incomplete hour, unless it is gone.)"""
    known = set(ClusterCoverage.objects.filter(pk__in=clusters).values_list("pk", flat=True))
    for cluster_id in sorted(set(clusters) - known):
        yield IncompleteHour(cluster_id, start, "no usage file speaks of the cluster")

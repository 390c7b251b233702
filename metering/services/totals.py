"""The usage that billing reads.

Each function reads in the caller's tenancy scope: an organization's, or the system's for all.
Quantities are whole numbers of the meter's unit; months are UTC, named by any day in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import Max, Min, QuerySet, Sum

from console.base.common.conf import config
from metering.choices import FileState, Granularity, RunState
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


@dataclass(frozen=True, slots=True)
class BillableTotal:
    """What one cluster used of one meter in a month: the sum of published, billed days."""

    organization_id: str
    cluster_id: str
    meter: str
    quantity: int
    month: date

    def row_ids(self) -> list[str]:
        """Ids of the rows that make up the sum."""
        return usage_row_ids(self.organization_id, self.cluster_id, self.meter, self.month)


@dataclass(frozen=True, slots=True)
class IncompleteHour:
    """An hour of which usage may be missing, and why."""

    cluster_id: str
    hour: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class MonthCompleteness:
    """Whether a month can be closed, and if not what is missing."""

    complete: bool
    # Days without a published roll-up.
    missing_days: list[date]
    # Days with usage files that their roll-up did not read.
    stale_days: list[date]
    incomplete_hours: list[IncompleteHour]


@dataclass(frozen=True, slots=True)
class UsageFileRef:
    """A usage file as a roll-up reads it."""

    key: str
    size_bytes: int
    sha256: str
    rows: int


def billable_totals(month: date, organization_id: str | None = None) -> Iterator[BillableTotal]:
    """Totals of the published, billed days of a month, in the order of organizations.

    They are streamed, so the caller must read them within one transaction, such as a tenancy scope.
    """
    sums = (
        _billed_days(month, organization_id)
        .values_list("organization_id", "cluster_id", "meter")
        .annotate(total=Sum("quantity"))
        .order_by("organization_id", "cluster_id", "meter")
    )
    for owner, cluster_id, meter, total in sums.iterator(chunk_size=ROWS_A_FETCH):
        yield BillableTotal(owner, cluster_id, meter, int(total), month_start(month))


def usage_row_ids(organization_id: str, cluster_id: str, meter: str, month: date) -> list[str]:
    """Ids of the rows behind one of the `billable_totals`, by time."""
    rows = _billed_days(month, organization_id).filter(cluster_id=cluster_id, meter=meter)
    return list(rows.order_by("window_start", "id").values_list("pk", flat=True))


def month_completeness(
    month: date, organization_id: str | None = None, *, clusters: Collection[str] = ()
) -> MonthCompleteness:
    """Whether everything of a month is published and complete.

    Of each cluster in `clusters` there must be a usage file. For many organizations one call
    without `organization_id` is enough.
    """
    start, end = month_span(month)
    pointers = _current_runs(start.date(), end.date())
    first = min([*pointers, *filter(None, [first_day(config().cell.id)])], default=start.date())
    # Days before the first usage file have nothing to roll up.
    missing = [day for day in days_of_month(month) if day not in pointers and day >= first]
    stale = [day for day, run in pointers.items() if has_grown(day, run)]
    hours = [
        *_incomplete_hours(start, end, organization_id),
        *_unheard_clusters(start, clusters),
    ]
    return MonthCompleteness(
        complete=not (missing or stale or hours),
        missing_days=missing,
        stale_days=sorted(stale),
        incomplete_hours=sorted(hours, key=lambda hour: (hour.hour, hour.cluster_id)),
    )


def days_of_new_files(cell: str, since: datetime) -> set[date]:
    """The days of which usage files that were taken in since a time say something."""
    files = UsageFile.objects.filter(cell=cell, state=FileState.INGESTED, tried_at__gte=since)
    spans = files.values_list("window_start_ms", "window_end_ms")
    days: set[date] = set()
    for start_ms, end_ms in spans.iterator(chunk_size=ROWS_A_FETCH):
        if start_ms is None or end_ms is None:
            continue
        day, last = from_ms(start_ms).date(), from_ms(max(start_ms, end_ms - 1)).date()
        days.update(day + number * DAY for number in range((last - day).days + 1))
    return days


def rollup_inputs(run_ids: Iterable[str]) -> list[UsageFileRef]:
    """The usage files that have the rows that runs were made from, each once, by key."""
    files = {}
    for inputs in RollupRun.objects.filter(pk__in=list(run_ids)).values_list("inputs", flat=True):
        for file in inputs:
            files[file["key"]] = UsageFileRef(**file)
    return present_files(files)


def present_files(files: Mapping[str, UsageFileRef]) -> list[UsageFileRef]:
    """The files that count in the place of some, by key: themselves, or what replaced them."""
    counting = dict(files)
    replaced = UsageFile.objects.filter(pk__in=list(files), replaced_by__isnull=False)
    fields = (f"replaced_by__{name}" for name in ("key", "size_bytes", "sha256", "rows"))
    for key, *values in replaced.values_list("key", *fields):
        del counting[key]
        counting[values[0]] = UsageFileRef(*values)
    return [counting[key] for key in sorted(counting)]


def metered_until(cluster_id: str) -> datetime | None:
    """The first hour of a cluster that is incomplete.

    None where no usage file has an entry of the cluster. For a cluster that is gone and whose hours
    are all complete, the end of its last hour.
    """
    hours = JudgedHour.objects.filter(cluster_id=cluster_id)
    incomplete: datetime | None = hours.filter(complete=False).aggregate(first=Min("hour"))["first"]
    if incomplete is not None:
        return incomplete
    last: datetime | None = hours.aggregate(last=Max("hour"))["last"]
    return None if last is None else last + HOUR


def is_metered(*, cluster_id: str, until: datetime) -> bool:
    """Whether all usage of a cluster up to a time is in usage files.

    False for a cluster without an entry in a usage file: a running agent writes one for every
    cluster.
    """
    metered = metered_until(cluster_id)
    return metered is not None and metered >= until


def has_grown(day: date, run: RollupRun) -> bool:
    """Whether there are usage files of a day that neither its run nor a later run has read.

    A later run may have read more files with the same rows, and then nothing was published.
    """
    good = RollupRun.objects.filter(
        cell=run.cell, day=day, state__in=[RunState.PUBLISHED, RunState.UNCHANGED]
    )
    newest_sha256 = good.order_by("-created_at").values_list("inputs_sha256", flat=True).first()
    return inputs_sha256(emitted_files(run.cell, day)) != newest_sha256


def first_day(cell: str) -> date | None:
    """The first day of which a usage file has rows; None without a file."""
    start: int | None = UsageFile.objects.filter(cell=cell).aggregate(first=Min("window_start_ms"))[
        "first"
    ]
    return None if start is None else from_ms(start).date()


def files_of_day(cell: str, day: date) -> list[UsageFileRef]:
    """Usage files with rows of a day, by key; damaged ones too if their manifest can be read.

    Of files that are joined the replacement is among them, and not what it replaces.
    """
    return files_between(cell, to_ms(day_start(day)), to_ms(day_start(day) + DAY))


def files_between(cell: str, since_ms: int, until_ms: int) -> list[UsageFileRef]:
    """Usage files with rows of [since, until), by key; damaged ones too if their manifest can be
    read.

    Times are milliseconds since 1970.
    """
    return _references(_files_within(cell, since_ms, until_ms).filter(replaced_by__isnull=True))


def emitted_files(cell: str, day: date, *, beside_ms: int = 0) -> list[UsageFileRef]:
    """The files with rows of a day as agents wrote them, by key, whether they are joined or not.

    So their hash says whether anything came since a roll-up. `beside_ms`: with those so long before
    and after the day.
    """
    start_ms, end_ms = to_ms(day_start(day)) - beside_ms, to_ms(day_start(day) + DAY) + beside_ms
    return _references(_files_within(cell, start_ms, end_ms).filter(joined=0))


def _files_within(cell: str, since_ms: int, until_ms: int) -> QuerySet[UsageFile]:
    return UsageFile.objects.filter(
        cell=cell, window_end_ms__gt=since_ms, window_start_ms__lt=until_ms
    )


def _references(files: QuerySet[UsageFile]) -> list[UsageFileRef]:
    fields = ("key", "size_bytes", "sha256", "rows")
    return [UsageFileRef(*values) for values in files.order_by("key").values_list(*fields)]


def inputs_sha256(files: Iterable[UsageFileRef]) -> str:
    """One hash of a set of files, from their keys and hashes."""
    lines = sorted(f"{file.key} {file.sha256}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _billed_days(month: date, organization_id: str | None) -> UsageRowQuerySet:
    start, end = month_span(month)
    rows = UsageRow.objects.all().current().billed().within(start, end)
    # `.value`, so that the condition is exactly that of the partial index `usage_rows_billed`.
    rows = rows.filter(granularity=Granularity.DAY.value)
    return rows if organization_id is None else rows.for_organization(organization_id)


def _current_runs(first: date, end: date) -> dict[date, RollupRun]:
    """The current run of each day in [first, end) that has one and was over by then."""
    pointers = RollupPointer.objects.final()
    pointers = pointers.filter(cell=config().cell.id, day__gte=first, day__lt=end)
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


def _unheard_clusters(start: datetime, clusters: Collection[str]) -> Iterator[IncompleteHour]:
    """An incomplete hour for each cluster without an entry in a usage file.

    A cluster with an entry needs none: its hour after the last entry is incomplete, unless it is
    gone.
    """
    heard = set(ClusterCoverage.objects.filter(pk__in=clusters).values_list("pk", flat=True))
    for cluster_id in sorted(set(clusters) - heard):
        yield IncompleteHour(cluster_id, start, "no usage file has an entry of the cluster")

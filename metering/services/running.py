"""Keeps running totals: after every commit they are what the rows that count sum to.

A day counts from its provisional minutes until it is published, and from the rows of its published
run from then on. A run that was made before its day was over (`RollupPointer.early`) publishes
nothing in this sense. Only billed usage counts.

Ingest adds what it adds to the minutes, and publishing replaces a day's part, each in its own
transaction. Both hold a lock for the rest of it: what a day counts from changes for nobody who is
adding to it. Nothing corrects a total by itself: each night `comparing.py` reports what differs,
and `manage.py running_totals --rebuild` is a person's decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from django.db import DataError, connection
from django.db.models import Max, Min

from console.base.common import locks
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import ACCRUING_METERS
from metering.models import ProvisionalMinute, RollupPointer, RunningDay, RunningHour
from metering.periods import DAY, MINUTES_KEPT, day_start, month_span, month_start, next_month
from metering.services.minute_parts import make_parts
from metering.services.running_sql import (
    ADD_MINUTES,
    EMPTY_MONTH,
    FOLD_RUN,
    REBUILD,
    REBUILD_HOURS,
)

LOCK = "usage_totals"
# Hours of this time are compared: somewhat fewer than are kept, so that none is half removed.
HOURS_COMPARED = MINUTES_KEPT - DAY


def add_minutes(columns: Mapping[str, Sequence[Any]], *, keep_from: datetime) -> None:
    """Adds usage to the minutes from `keep_from` on, and to the totals that follow from them.

    `columns`: those of `metering.minutes.Additions`. Needs the system's scope; holds the lock of
    the totals for the rest of the transaction. Raises `DataError` for what PostgreSQL does not
    store.
    """
    hold_totals()
    make_parts(columns["window_start_ms"], columns["minutes"], keep_from=keep_from)
    parameters = {
        **{name: _array_literal(values) for name, values in columns.items()},
        "keep_from": keep_from,
        "cell": config().cell.id,
        "accruing": list(ACCRUING_METERS),
    }
    _execute(ADD_MINUTES, parameters)


def fold_run(*, day: date, run_id: str, replaced: str | None) -> None:
    """Has a day count from a published run: from now on its minutes add nothing to the totals.

    `replaced`: the published run that it counted from before; None where it counted from its
    minutes. It belongs into the transaction that moves the pointer, before that is moved. Needs the
    system's scope.
    """
    hold_totals()
    _execute(FOLD_RUN, {"day": day, "run": run_id, "replaced": replaced})


def hold_totals() -> None:
    """Keeps others from changing totals, and what days count from, until the transaction ends."""
    locks.lock_briefly(LOCK, config().cell.id)


def remove_old_hours(before: datetime) -> None:
    """Removes the totals of hours before a time."""
    RunningHour.objects.filter(hour__lt=before).delete()


def months_with_usage() -> list[date]:
    """The months of which there are rows or totals, in order. Needs the system's scope."""
    months = set(RunningDay.objects.dates("day", "month"))
    months |= {
        month_start(day)
        for day in RollupPointer.objects.filter(early=False).values_list("day", flat=True)
    }
    span = ProvisionalMinute.objects.aggregate(first=Min("minute"), last=Max("minute"))
    if span["first"] is not None:
        month = month_start(span["first"].date())
        while month <= span["last"].date():
            months.add(month)
            month = next_month(month)
    return sorted(months)


def rebuild_month(month: date) -> None:
    """Makes a month's totals anew from its rows, in one transaction; ingest waits meanwhile."""
    parameters = span_of_month(month)
    with system_scope():
        hold_totals()
        for statement in EMPTY_MONTH:
            _execute(statement, parameters)
        _execute(REBUILD, parameters)


def rebuild_hours() -> None:
    """Makes the totals of the hours of the last days anew from their minutes."""
    with system_scope():
        hold_totals()
        RunningHour.objects.all().delete()
        _execute(REBUILD_HOURS, {"accruing": list(ACCRUING_METERS), "hours_from": hours_from()})


def span_of_month(month: date) -> dict[str, Any]:
    """The parameters of the statements about a month."""
    start, until = month_span(month)
    return {
        "cell": config().cell.id,
        "start": start,
        "until": until,
        "first": start.date(),
        "end": until.date(),
        "accruing": list(ACCRUING_METERS),
    }


def hours_from() -> datetime:
    """The beginning of the first hour that has all of its minutes, of those that are kept."""
    return day_start((now() - HOURS_COMPARED).date())


def _array_literal(values: Sequence[str | int | bool]) -> str:
    """A column as PostgreSQL writes an array. Raises `DataError` for a text with a NUL.

    The library quotes each value by itself, which took a sixth of an ingest's time.
    """
    joined = "\0".join(map(str, values))
    if joined.count("\0") != max(0, len(values) - 1):
        message = "a text has a NUL character"
        raise DataError(message)
    if not values:
        return "{}"
    quoted = joined.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '","')
    return f'{{"{quoted}"}}'


def _execute(statement: str, parameters: Mapping[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)

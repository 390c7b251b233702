"""The parts of the table of minutes: one for each day of which there are any.

They are made where the first minute of their day comes, and dropped as a whole when their day is
published and no longer kept. Functions of the database do both, since they run as the table's
owner (`migrations/0008_minutes_by_day.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from django.db import DataError, connection

from console.base.common.clock import now
from console.base.common.conf import config
from metering.periods import DAY_MS, MINUTE_MS, MINUTES_KEPT, day_start, to_ms

# A window or a batch of files with usage of more days is a mistake.
DAYS_MAX = 400


def make_parts(starts_ms: Sequence[int], minutes: Sequence[int], *, keep_from: datetime) -> int:
    """Makes the parts that minutes of these windows lie in, where they are missing.

    A window begins at one of `starts_ms` and has as many minutes as stand at its place in
    `minutes`. Those before `keep_from` are not added to the table, and need no part. Returns how
    many it made. Raises `DataError` for more than `DAYS_MAX` new days, and for impossible times.
    """
    first = to_ms(keep_from) // DAY_MS
    spans = {
        (start // DAY_MS, (start + (count - 1) * MINUTE_MS) // DAY_MS)
        for start, count in zip(starts_ms, minutes, strict=True)
    }
    if any(high - max(low, first) >= DAYS_MAX for low, high in spans):
        message = f"a window has usage of more than {DAYS_MAX} days"
        raise DataError(message)
    return _make(sorted({day for low, high in spans for day in range(max(low, first), high + 1)}))


def make_day_parts(days: Iterable[date]) -> int:
    """Makes the parts of days, where they are missing. Returns how many it made."""
    return _make([to_ms(day_start(day)) // DAY_MS for day in days])


def drop_parts() -> int:
    """Drops the parts of published days whose minutes are not kept; returns how many.

    Raises `OperationalError` where somebody reads the table for longer than a moment.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT metering_drop_minute_parts(%s, %s)", [config().cell.id, kept_since().date()]
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def kept_since() -> datetime:
    """The midnight since which all minutes are kept; older ones only of unpublished days."""
    return day_start((now() - MINUTES_KEPT).date())


def _make(days: list[int]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT metering_make_minute_parts(%s::bigint[])", [days])
        row = cursor.fetchone()
    return int(row[0]) if row else 0

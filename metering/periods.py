"""Days and months in UTC, and their spans of time. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
DAY_MS = 86_400_000
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
# Provisional minutes are kept so long, and then to the end of their day.
MINUTES_KEPT = 8 * DAY
# Files of agents, and hours in the files of roll-ups, are kept so long: 25 months.
FILES_KEPT = 770 * DAY


def day_start(day: date) -> datetime:
    """Midnight at the beginning of a day."""
    return datetime.combine(day, time(), UTC)


def month_start(month: date) -> date:
    """The first day of the month that a day lies in."""
    return month.replace(day=1)


def next_month(month: date) -> date:
    """The first day of the month after the one that a day lies in."""
    return (month_start(month) + timedelta(days=31)).replace(day=1)


def month_span(month: date) -> tuple[datetime, datetime]:
    """The month that a day lies in, as [start, end)."""
    return day_start(month_start(month)), day_start(next_month(month))


def days_of_month(month: date) -> Iterator[date]:
    """Each day of the month that a day lies in."""
    day, end = month_start(month), next_month(month)
    while day < end:
        yield day
        day += DAY


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def from_ms(milliseconds: int) -> datetime:
    """The time of so many milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds // 1000, UTC) + timedelta(
        milliseconds=milliseconds % 1000
    )

"""Minutes, hours and days in UTC, as milliseconds since 1970. This module reads no clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def floor_to(at_ms: int, unit_ms: int) -> int:
    """The last full unit at or before a time."""
    return at_ms - at_ms % unit_ms


def ceil_to(at_ms: int, unit_ms: int) -> int:
    """The first full unit at or after a time."""
    return -(-at_ms // unit_ms) * unit_ms


def day_of(at_ms: int) -> date:
    """The UTC day of a time."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def day_start_ms(day: date) -> int:
    """The first millisecond of a UTC day."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def hours_of(since_ms: int, until_ms: int) -> Iterator[int]:
    """The starts of all hours that [since, until) touches."""
    yield from range(floor_to(since_ms, HOUR_MS), until_ms, HOUR_MS)


def format_ms(at_ms: int) -> str:
    """A time as RFC 3339 with milliseconds, for people."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")

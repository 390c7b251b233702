"""Months for billing: whole calendar months in UTC. Pure."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

MINUTES_A_DAY = 24 * 60
# A month may be invoiced this long after its end: by then its usage files have arrived.
CLOSES_AFTER = timedelta(hours=72)

_MONTH = re.compile(r"(\d{4})-(\d{2})")


def parse_month(text: str) -> date:
    """The first day of a month that is written `YYYY-MM`. Raises `ValueError` for other texts."""
    match = _MONTH.fullmatch(text)
    if match is None:
        message = f"{text!r} is no month; YYYY-MM is expected"
        raise ValueError(message)
    return date(int(match.group(1)), int(match.group(2)), 1)


def month_of(moment: datetime) -> date:
    """The first day of the month that an aware time lies in."""
    day = moment.astimezone(UTC).date()
    return day.replace(day=1)


def next_month(month: date) -> date:
    """The first day of the month after the one that a day lies in."""
    return (month.replace(day=28) + timedelta(days=4)).replace(day=1)


def last_day(month: date) -> date:
    """The last day of the month that a day lies in."""
    return next_month(month) - timedelta(days=1)


def minutes_of(month: date) -> int:
    """The number of minutes of the month that a day lies in: 40,320 to 44,640."""
    first = month.replace(day=1)
    return (next_month(first) - first).days * MINUTES_A_DAY


def starts_at(month: date) -> datetime:
    """The first moment of a month."""
    return datetime(month.year, month.month, 1, tzinfo=UTC)


def closes_at(month: date) -> datetime:
    """The time from which on a month may be invoiced."""
    return starts_at(next_month(month)) + CLOSES_AFTER


def last_closed_month(at: datetime) -> date:
    """The first day of the newest month that may be invoiced at a time."""
    month = month_of(at - CLOSES_AFTER)
    return last_month(month)


def last_month(month: date) -> date:
    """The first day of the month before the one that a day lies in."""
    return (month.replace(day=1) - timedelta(days=1)).replace(day=1)

"""Months for billing: whole calendar months in UTC. Pure."""

from __future__ import annotations

import re
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta

MONTHS_A_YEAR = 12
MINUTES_A_DAY = 24 * 60
# A month may be invoiced this long after its end: by then its usage files have arrived.
CLOSES_AFTER = timedelta(hours=72)

# There are prices from here on; no invoice and no payment is older.
FIRST_DAY = date(2020, 1, 1)
# By how much a bank's clock, or its day, may be ahead of ours.
AHEAD_MAX = timedelta(days=1)

_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_month(text: str) -> date:
    """The first day of a month that is written `YYYY-MM`.

    Raises `ValueError` for other texts, and for months before there were prices.
    """
    match = _MONTH.fullmatch(text)
    year, month = (int(match[1]), int(match[2])) if match else (0, 0)
    # The month after the last one of the calendar has no date.
    if not 1 <= month <= MONTHS_A_YEAR or year == MAXYEAR:
        message = f"{text!r} is no month; YYYY-MM is expected"
        raise ValueError(message)
    first = date(max(year, MINYEAR), month, 1)
    if first < FIRST_DAY:
        message = f"{text} is before {FIRST_DAY:%Y-%m}, the first month that has prices"
        raise ValueError(message)
    return first


def parse_day(text: str) -> datetime:
    """The first moment of a day that is written `YYYY-MM-DD`. Raises `ValueError`."""
    try:
        day = date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        message = f"{text!r} is no day; YYYY-MM-DD is expected"
        raise ValueError(message)
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def require_past(moment: datetime, at: datetime) -> datetime:
    """A time at which money came in, as it is known at `at`.

    Raises `ValueError` for one that is still to come, and for one before there were prices.
    """
    if moment > at + AHEAD_MAX:
        message = f"{moment:%Y-%m-%d} is still to come"
        raise ValueError(message)
    if moment.astimezone(UTC).date() < FIRST_DAY:
        day = moment.date().isoformat()
        message = f"{day} is before {FIRST_DAY}, when there was nothing to pay"
        raise ValueError(message)
    return moment


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

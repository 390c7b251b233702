"""Times of the week at which a cluster is to be awake. Pure.

Whether a cluster is to be awake follows from its schedules and the moment alone, not from an event
when a time begins or ends. So somebody who looks late, twice or after days gets the same answer.

Times are local times of the schedule's zone, so 07:00 stays 07:00 when clocks change. A time that a
change of clocks skips is read with the offset before the change (RFC 5545, section 3.3.5). Of a
time that comes twice, the first counts where it is a start and the second where it is an end, so
that a cluster is awake without a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# The end of a day as text, which no clock shows.
MIDNIGHT = "24:00"
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True)
class Schedule:
    """A cluster is awake on `days` (0 is Monday) from `start` until `end`, local times of `zone`.

    Both are minutes since the day's beginning, `end` at most 1440. An `end` that is not after
    `start` is on the next day.
    """

    days: frozenset[int]
    start: int
    end: int
    zone: ZoneInfo

    def intervals(self, day: date, days: int) -> Iterator[tuple[datetime, datetime]]:
        """Yields [from, until) in UTC, in order, of times that begin on `day` or `days` later."""
        for ahead in range(days + 1):
            begins = day + timedelta(days=ahead)
            if begins.weekday() in self.days:
                ends = begins if self.end > self.start else begins + timedelta(days=1)
                since, until = self._at(begins, self.start), self._at(ends, self.end, last=True)
                # A change of clocks may leave nothing of a short time.
                if since < until:
                    yield since, until

    def _at(self, day: date, minutes: int, *, last: bool = False) -> datetime:
        ahead, rest = divmod(minutes, 24 * 60)
        wall = datetime.combine(
            day + timedelta(days=ahead), time(rest // 60, rest % 60), tzinfo=self.zone
        )
        moments = [wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
        return max(moments) if last else moments[0]


@dataclass(frozen=True)
class ScheduledState:
    """Whether a cluster is to be awake at a moment, and until when that holds; None: for ever."""

    awake: bool
    until: datetime | None


def scheduled_state(schedules: Sequence[Schedule], at: datetime) -> ScheduledState:
    """What schedules want together at the moment `at`: awake where any of them wants that."""
    intervals: list[tuple[datetime, datetime]] = []
    for schedule in schedules:
        # A time that began the day before may still last, and every time comes again in a week.
        first = at.astimezone(schedule.zone).date() - timedelta(days=2)
        intervals += schedule.intervals(first, days=10)
    awake_until: datetime | None = None
    for since, until in sorted(intervals):
        if awake_until is None:
            if at < since:
                return ScheduledState(awake=False, until=since)
            awake_until = until if at < until else None
        elif since <= awake_until:
            awake_until = max(awake_until, until)
        else:
            break
    if awake_until is None:
        return ScheduledState(awake=False, until=None)
    # Times that cover a whole week follow each other for ever. A gap after more than a week is not
    # one: the intervals of one zone end earlier than those of another.
    endless = awake_until - at > timedelta(days=7)
    return ScheduledState(awake=True, until=None if endless else awake_until)


def schedules_of(stored: Sequence[Mapping[str, Any]]) -> tuple[Schedule, ...]:
    """Reads schedules in the form of a cluster's row and of the API. Raises `ValueError`."""
    return tuple(
        Schedule(
            frozenset(DAYS.index(day) for day in schedule["days"]),
            minutes_of(schedule["start"]),
            minutes_of(schedule["end"]),
            zone_of(schedule["time_zone"]),
        )
        for schedule in stored
    )


def minutes_of(text: str) -> int:
    """`HH:MM` as minutes since the day's beginning; 24:00 is its end. Raises `ValueError`."""
    if text == MIDNIGHT:
        return 24 * 60
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        message = f"{text!r} is not like 07:30"
        raise ValueError(message)
    return int(clock[1]) * 60 + int(clock[2])


def zone_of(name: str) -> ZoneInfo:
    """The zone with a name of the IANA's database. Raises `ValueError` for another name."""
    if name not in _zones():
        message = f"{name!r} is no time zone"
        raise ValueError(message)
    return ZoneInfo(name)


@cache
def _zones() -> frozenset[str]:
    # Cached, because it reads folders. The two names that it leaves out are no places.
    return frozenset(available_timezones() - {"localtime", "Factory"})

"""Times of the week at which a cluster shall be awake. Pure: schedules and a moment in.

What is wanted follows from the moment alone, never from an event at an edge: whoever looks late,
twice or after a pause of days comes to the same.

Times are of the wall in the schedule's own zone, so 07:00 stays 07:00 when clocks change. A time
that a change of clocks skips is taken as it would be had the clock not changed yet, as RFC 5545
(section 3.3.5) has it; of one that comes twice the first begins and the second ends, so that a
cluster is awake without a gap.
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
# The end of a day, which no clock shows.
MIDNIGHT = "24:00"
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True)
class Schedule:
    """Awake on these days (0 is Monday) from `start` until `end` in a zone.

    Where `end` is not behind `start` it is of the day after. Both are minutes of the day, `end` up
    to 1440.
    """

    days: frozenset[int]
    start: int
    end: int
    zone: ZoneInfo

    def intervals(self, day: date, days: int) -> Iterator[tuple[datetime, datetime]]:
        """[from, until) in UTC of those that begin on a day or the `days` behind it, in order."""
        for ahead in range(days + 1):
            begins = day + timedelta(days=ahead)
            if begins.weekday() in self.days:
                ends = begins if self.end > self.start else begins + timedelta(days=1)
                since, until = self._at(begins, self.start), self._at(ends, self.end, last=True)
                # A change of clocks may leave nothing of a short one.
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
    """Whether it shall be awake now, and when that changes; None: never."""

    awake: bool
    until: datetime | None


def scheduled_state(schedules: Sequence[Schedule], at: datetime) -> ScheduledState:
    """What the schedules want at a moment together: awake where any of them does."""
    found: list[tuple[datetime, datetime]] = []
    for schedule in schedules:
        # One that began the day before may still hold, and each comes again within a week.
        first = at.astimezone(schedule.zone).date() - timedelta(days=2)
        found += schedule.intervals(first, days=10)
    awake_until: datetime | None = None
    for since, until in sorted(found):
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
    # Those of the whole week follow each other without end. A gap behind a week is none: one time
    # zone was looked at for longer than another.
    endless = awake_until - at > timedelta(days=7)
    return ScheduledState(awake=True, until=None if endless else awake_until)


def schedules_of(stored: Sequence[Mapping[str, Any]]) -> tuple[Schedule, ...]:
    """Schedules as a row and the API have them. Raises `ValueError` for what is none."""
    return tuple(
        Schedule(
            frozenset(DAYS.index(day) for day in each["days"]),
            minutes_of(each["start"]),
            minutes_of(each["end"]),
            zone_of(each["time_zone"]),
        )
        for each in stored
    )


def minutes_of(text: str) -> int:
    """`HH:MM` as minutes of the day; 24:00 is its end. Raises `ValueError`."""
    if text == MIDNIGHT:
        return 24 * 60
    found = _CLOCK.fullmatch(text)
    if found is None:
        message = f"{text!r} is not like 07:30"
        raise ValueError(message)
    return int(found[1]) * 60 + int(found[2])


def zone_of(name: str) -> ZoneInfo:
    """A zone of the IANA's data base. Raises `ValueError` for a name of none."""
    if name not in _zones():
        message = f"{name!r} is no time zone"
        raise ValueError(message)
    return ZoneInfo(name)


@cache
def _zones() -> frozenset[str]:
    # Reads folders: once. What is no zone of people's stays out.
    return frozenset(available_timezones() - {"localtime", "Factory"})

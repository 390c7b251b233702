"""Schedules on the command line: `mon-fri 07:00-19:00 Europe/Zurich`."""

from __future__ import annotations

import re

import click

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAILY = "daily"
_SCHEDULE = re.compile(r"(?P<days>\S+)\s+(?P<start>[\d:]+)-(?P<end>[\d:]+)(?:\s+(?P<zone>\S+))?")


def schedules_of(texts: list[str]) -> list[dict[str, object]]:
    """Schedules as the API takes them. Raises `click.BadParameter`."""
    return [_schedule(text) for text in texts]


def _schedule(text: str) -> dict[str, object]:
    found = _SCHEDULE.fullmatch(text.strip())
    days = _days(found["days"].lower()) if found else None
    if found is None or days is None:
        message = f"{text!r} is not like 'mon-fri 07:00-19:00 Europe/Zurich'."
        raise click.BadParameter(message, param_hint="--schedule")
    schedule: dict[str, object] = {"days": days, "start": found["start"], "end": found["end"]}
    return {**schedule, "time_zone": found["zone"]} if found["zone"] else schedule


def _days(text: str) -> list[str] | None:
    """Days and ranges of them between commas, in the week's order; None where it names others."""
    if text == DAILY:
        return list(DAYS)
    chosen: set[str] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            return None
        begin, end = DAYS.index(first), DAYS.index(last if dash else first)
        # Friday to Monday goes over the week's end.
        length = (end - begin) % len(DAYS) + 1
        chosen |= {DAYS[(begin + n) % len(DAYS)] for n in range(length)}
    return [day for day in DAYS if day in chosen]

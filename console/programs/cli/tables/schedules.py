"""Parses schedules of the command line, such as `mon-fri 07:00-19:00 Europe/Zurich`."""

from __future__ import annotations

import re

import click

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAILY = "daily"
_SCHEDULE = re.compile(r"(?P<days>\S+)\s+(?P<start>[\d:]+)-(?P<end>[\d:]+)(?:\s+(?P<zone>\S+))?")


def schedules_of(texts: list[str]) -> list[dict[str, object]]:
    """Returns schedules as the API takes them. Raises `click.BadParameter`."""
    return [_parse_schedule(text) for text in texts]


def _parse_schedule(text: str) -> dict[str, object]:
    match = _SCHEDULE.fullmatch(text.strip())
    days = _parse_days(match["days"].lower()) if match else None
    if match is None or days is None:
        message = f"{text!r} must be like 'mon-fri 07:00-19:00 Europe/Zurich'."
        raise click.BadParameter(message, param_hint="--schedule")
    schedule: dict[str, object] = {"days": days, "start": match["start"], "end": match["end"]}
    return {**schedule, "time_zone": match["zone"]} if match["zone"] else schedule


def _parse_days(text: str) -> list[str] | None:
    """Returns the days of a text like `mon,wed-fri` in the week's order; None if it is wrong."""
    if text == DAILY:
        return list(DAYS)
    chosen: set[str] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            return None
        begin, end = DAYS.index(first), DAYS.index(last if dash else first)
        # A range may pass the end of the week, such as fri-mon.
        length = (end - begin) % len(DAYS) + 1
        chosen |= {DAYS[(begin + n) % len(DAYS)] for n in range(length)}
    return [day for day in DAYS if day in chosen]

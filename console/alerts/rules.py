"""When an alert fires, and when it is over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from console.alerts.choices import AlertState


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure, and whose it is where there are several (a group's name)."""

    value: int
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The state of an alert after a look.

    `contrary_since`: since when every figure speaks against `state`.
    """

    state: AlertState
    changed_at: datetime
    contrary_since: datetime | None = None


def judge(
    before: Evaluation, value: int | None, *, threshold: int, for_s: int, at: datetime
) -> Evaluation:
    """The evaluation after another look. An unknown figure proves nothing, either way."""
    if value is None or (value > threshold) == (before.state is AlertState.FIRING):
        return Evaluation(before.state, before.changed_at)
    since = before.contrary_since or at
    if at - since < timedelta(seconds=for_s):
        return Evaluation(before.state, before.changed_at, since)
    firing = before.state is not AlertState.FIRING
    return Evaluation(AlertState.FIRING if firing else AlertState.OK, at)


def worst_group(groups: Iterable[Mapping[str, Any]], *, figure: str, wanted: str) -> Reading | None:
    """The greatest lag of the groups of a sample, or of the one that is wanted.

    `figure`: `lag` or `lag_seconds`. None where nothing is known of it; no groups have no lag.
    """
    seen = [each for each in groups if wanted in {"", each["group"]}]
    if not seen:
        return None if wanted else Reading(0)
    known = [(each[figure], each["group"]) for each in seen if each[figure] is not None]
    if not known:
        return None
    value, group = max(known)
    return Reading(int(value), group)

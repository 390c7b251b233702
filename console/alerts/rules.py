"""Decides when an alert fires and when it is over. Pure: nothing here reads a clock or a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from console.alerts.choices import AlertState


@dataclass(frozen=True, slots=True)
class Reading:
    """A measured figure. `subject`: the consumer group it belongs to; empty for other figures."""

    value: int
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The state of an alert after its figure was read.

    `contrary_since`: since when every figure has spoken against `state`; None where the last one
    did not.
    """

    state: AlertState
    changed_at: datetime
    contrary_since: datetime | None = None


def judge_figure(
    before: Evaluation, value: int | None, *, threshold: int, for_s: int, at: datetime
) -> Evaluation:
    """Returns the evaluation after another figure was read.

    The state changes once every figure has spoken against it for `for_s` seconds. A figure that
    is not known (None) neither lets the alert fire nor ends it, and starts the time anew.
    """
    if value is None or (value > threshold) == (before.state is AlertState.FIRING):
        return Evaluation(before.state, before.changed_at)
    since = before.contrary_since or at
    if at - since < timedelta(seconds=for_s):
        return Evaluation(before.state, before.changed_at, since)
    firing = before.state is not AlertState.FIRING
    return Evaluation(AlertState.FIRING if firing else AlertState.OK, at)


def worst_group(
    groups: Iterable[Mapping[str, Any]], *, figure: str, group_name: str
) -> Reading | None:
    """Returns the greatest lag among the groups of a keeper's sample.

    `figure`: `lag` (records) or `lag_seconds`. `group_name`: the only group that counts; empty for
    all of them. Returns None where the lag is not known. A cluster without groups has a lag of 0.
    """
    matching = [sample for sample in groups if group_name in {"", sample["group"]}]
    if not matching:
        return None if group_name else Reading(0)
    known = [(sample[figure], sample["group"]) for sample in matching if sample[figure] is not None]
    if not known:
        return None
    value, group = max(known)
    return Reading(int(value), group)

"""Decides when an alert is pending, fires and is over. Pure: it reads no clock and no store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from console.alerts.choices import AlertState


@dataclass(frozen=True, slots=True)
class Reading:
    """A measured figure. `subject`: the group that it belongs to, or the topic with most of it."""

    value: int
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The state of an alert after its figure was read.

    `changed_at`: since when it is in this state. `beyond_since`: when every figure began to be
    beyond the threshold, of the last time that it was pending or firing. `back_since`: since when
    every figure of a firing alert is back; None where the last one was not.
    """

    state: AlertState
    changed_at: datetime
    beyond_since: datetime | None = None
    back_since: datetime | None = None


def judge_figure(
    before: Evaluation, value: int | None, *, threshold: int, for_s: int, at: datetime
) -> Evaluation:
    """Returns the evaluation after another figure was read.

    An alert is pending from the first figure beyond the threshold on, and fires once every figure
    was for `for_s` seconds. It is over once every figure was back for as long. A figure that is not
    known (None) ends what is pending, and neither ends what fires nor counts as being back.
    """
    beyond = value is not None and value > threshold
    lasts = timedelta(seconds=for_s)
    if before.state is AlertState.FIRING:
        if beyond or value is None:
            return replace(before, back_since=None)
        back_since = before.back_since or at
        if at - back_since < lasts:
            return replace(before, back_since=back_since)
        return Evaluation(AlertState.OK, at, before.beyond_since)
    pending = before.state is AlertState.PENDING
    if not beyond:
        return Evaluation(AlertState.OK, at, before.beyond_since) if pending else before
    since = before.changed_at if pending else at
    if at - since < lasts:
        return Evaluation(AlertState.PENDING, since, since)
    return Evaluation(AlertState.FIRING, at, since)


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


def leading_topic(bytes_by_topic: Mapping[str, int]) -> str:
    """Returns the topic with the most bytes; empty where none has more than 0."""
    most, topic = max(((count, topic) for topic, count in bytes_by_topic.items()), default=(0, ""))
    return topic if most > 0 else ""

"""Which retention rule of a topic counts at a time. Pure.

A rule counts once it has held for five minutes. Until then what the rule before it keeps counts
too: a broker that runs applies rules once a minute, and one that sleeps applies none, so nothing
was removed yet. What a rule excluded that counted stays excluded, whatever rule follows
(`metering.agent.storage.Exclusion`), and brokers hand it out to nobody again. The engine counts
the same way: `brokers/core/crates/metadata/src/schema/retention.rs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from metering.events.times import MINUTE_MS, ceil_to, floor_to

SETTLED_AFTER_MS = 5 * MINUTE_MS

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """A topic's retention rule for each partition; None means no limit."""

    retention_ms: int | None = None
    retention_bytes: int | None = None

    def looser(self, other: Rule) -> Rule:
        """The rule that keeps all that either keeps."""
        return Rule(
            _greater_of(self.retention_ms, other.retention_ms),
            _greater_of(self.retention_bytes, other.retention_bytes),
        )


class RuledTopic(Protocol):
    """A topic with its present retention rule."""

    @property
    def id(self) -> str:
        """32 hexadecimal digits."""

    @property
    def deleted_at_ms(self) -> int | None:
        """When it was deleted; None if it was not."""

    @property
    def retention_ms(self) -> int | None:
        """How long records are kept, in ms; None keeps them for ever."""

    @property
    def retention_bytes(self) -> int | None:
        """How many bytes of a partition are kept; None keeps all."""

    @property
    def retention_since_ms(self) -> int:
        """Since when these two hold at the earliest; 0 where they never changed."""

    @property
    def retention_before(self) -> tuple[int | None, int | None] | None:
        """The two that counted until then; None where the topic does not know them."""


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """A topic's rule, since when it holds, and the rule that counted before."""

    before: Rule
    now: Rule
    since_ms: int = 0

    def counting(self, at_ms: int) -> Rule:
        """The rule that counts at a time from the last change on."""
        settled = at_ms - self.since_ms >= SETTLED_AFTER_MS
        return self.now if settled else self.before.looser(self.now)

    def pieces(self, span: Span) -> Iterator[tuple[Span, Rule]]:
        """The parts of a span of whole minutes, in order, with the rule that counts in each."""
        changed_ms = ceil_to(self.since_ms, MINUTE_MS)
        settled_ms = floor_to(self.since_ms + SETTLED_AFTER_MS, MINUTE_MS)
        start, end = span
        for until_ms, rule in (
            (changed_ms, self.before),
            (settled_ms, self.before.looser(self.now)),
            (end, self.now),
        ):
            if start < min(until_ms, end):
                yield (start, min(until_ms, end)), rule
                start = min(until_ms, end)


def update_histories(
    histories_before: Mapping[str, RuleHistory],
    topics: Iterable[RuledTopic],
    *,
    as_of_ms: int,
    measured_until_ms: int,
) -> dict[str, RuleHistory]:
    """The histories after a look at all topics.

    Topics that were deleted before `measured_until_ms` are left out: no later window counts them.
    """
    return {
        topic.id: _history_of(topic, histories_before.get(topic.id), as_of_ms)
        for topic in topics
        if topic.deleted_at_ms is None or topic.deleted_at_ms >= measured_until_ms
    }


def _history_of(topic: RuledTopic, known: RuleHistory | None, as_of_ms: int) -> RuleHistory:
    rule = Rule(topic.retention_ms, topic.retention_bytes)
    since_ms = topic.retention_since_ms
    if known is not None and known.now == rule and known.since_ms >= since_ms:
        return known
    if topic.retention_before is not None:
        return RuleHistory(Rule(*topic.retention_before), rule, since_ms)
    if known is None:
        return RuleHistory(rule, rule, since_ms)
    if since_ms <= known.since_ms:
        # Nobody recorded when: the defaults of another release, or a change by an earlier one.
        since_ms = as_of_ms
    return RuleHistory(known.counting(since_ms), rule, since_ms)


def _greater_of(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)

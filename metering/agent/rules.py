"""Which retention rule held at a time, of which only looks now and then tell: pure.

Between two looks a rule may have changed at any moment. Until the later look both must have kept
what counts, so that nothing is billed that one of them let go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from metering.agent.storage import Rule


class RuledTopic(Protocol):
    """A topic with what it keeps now."""

    @property
    def id(self) -> str:
        """32 hexadecimal digits."""

    @property
    def deleted_at_ms(self) -> int | None:
        """When it was deleted."""

    @property
    def retention_ms(self) -> int | None:
        """Age."""

    @property
    def retention_bytes(self) -> int | None:
        """Size of a partition."""


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """What a topic keeps since a look, and the strictest that it kept before."""

    before: Rule
    now: Rule
    since_ms: int = 0

    def at(self, window_start_ms: int) -> Rule:
        """The rule for a window that starts at this time."""
        return self.now if window_start_ms >= self.since_ms else self.before.stricter(self.now)


def looked(
    known: Mapping[str, RuleHistory],
    topics: Iterable[RuledTopic],
    *,
    as_of_ms: int,
    measured_until_ms: int,
) -> dict[str, RuleHistory]:
    """The histories after a look; those of topics that no later window can see are left out."""
    histories = {}
    for topic in topics:
        if topic.deleted_at_ms is not None and topic.deleted_at_ms < measured_until_ms:
            continue
        rule = Rule(topic.retention_ms, topic.retention_bytes)
        history = known.get(topic.id, RuleHistory(rule, rule))
        if history.now != rule:
            history = RuleHistory(history.at(measured_until_ms), rule, as_of_ms)
        histories[topic.id] = history
    return histories

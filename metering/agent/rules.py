"""Which retention rule of a topic held at a time. Pure.

The agent looks at the rules only now and then, so between two looks a rule may have changed at any
moment. Until the later look only what both rules keep counts, so that nothing is billed that one
of them removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from metering.agent.storage import Rule


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


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """A topic's rule since a look (`since_ms`), and the strictest rule before it."""

    before: Rule
    now: Rule
    since_ms: int = 0

    def at(self, window_start_ms: int) -> Rule:
        """The rule for a window that starts at this time."""
        return self.now if window_start_ms >= self.since_ms else self.before.stricter(self.now)


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
    histories = {}
    for topic in topics:
        if topic.deleted_at_ms is not None and topic.deleted_at_ms < measured_until_ms:
            continue
        rule = Rule(topic.retention_ms, topic.retention_bytes)
        history = histories_before.get(topic.id, RuleHistory(rule, rule))
        if history.now != rule:
            history = RuleHistory(history.at(measured_until_ms), rule, as_of_ms)
        histories[topic.id] = history
    return histories

"""Decides when deletions are held, and how often a broker may be replaced: pure.

A broker that does not answer is replaced. Where many at once do not answer, the keeper itself may
be cut off: then only those are replaced whose machine the platform reports as lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GuardRules:
    """The numbers by which deletions are held. Times are in milliseconds.

    They are held once more than `percent_max` percent of the brokers that should run, or more than
    `brokers_max` of them, and at least `brokers_min`, were unhealthy for `hold_after_ms`. They are
    allowed again once it was less than half of that for `release_after_ms`.
    """

    percent_max: int = 20
    brokers_max: int = 50
    brokers_min: int = 3
    hold_after_ms: int = 10_000
    release_after_ms: int = 60_000


@dataclass(frozen=True)
class Guard:
    """Whether deletions are held.

    `since_ms` is since when the looks ask for the other state (Unix ms); None where they do not.
    """

    held: bool = False
    since_ms: int | None = None


def guard_after(
    before: Guard, *, expected: int, unhealthy: int, now_ms: int, rules: GuardRules
) -> Guard:
    """The guard after a look at the cell, which found `unhealthy` of `expected` brokers."""
    if before.held:
        few = 2 * unhealthy < rules.brokers_min
        turns = few or not _too_many(2 * unhealthy, expected, rules)
        after_ms = rules.release_after_ms
    else:
        turns = unhealthy >= rules.brokers_min and _too_many(unhealthy, expected, rules)
        after_ms = rules.hold_after_ms
    if not turns:
        return Guard(before.held)
    # Where the clock was set back, the time begins again.
    since_ms = now_ms if before.since_ms is None else min(before.since_ms, now_ms)
    if now_ms - since_ms >= after_ms:
        return Guard(not before.held)
    return Guard(before.held, since_ms)


def _too_many(unhealthy: int, expected: int, rules: GuardRules) -> bool:
    return unhealthy > rules.brokers_max or 100 * unhealthy > rules.percent_max * expected


# The shortest and the longest pause between two replacements of a slot; it doubles each time.
PAUSE_MS = (10_000, 300_000)
# A replacement this long after the last one counts as the first again.
FORGIVEN_MS = 600_000


@dataclass(frozen=True)
class Replaced:
    """How often in a row the broker of a slot was replaced, and when last (Unix ms)."""

    count: int
    at_ms: int

    def again(self, now_ms: int) -> Replaced:
        """The record after one more replacement."""
        count = 1 if now_ms - self.at_ms >= FORGIVEN_MS else self.count + 1
        return Replaced(count, now_ms)

    def due(self, now_ms: int) -> bool:
        """Whether the slot's broker may be replaced again at `now_ms`."""
        first_ms, last_ms = PAUSE_MS
        pause_ms = min(first_ms * 2 ** min(self.count - 1, 16), last_ms)
        # A negative time means that the clock was set back, which must not prevent a replacement.
        return not 0 <= now_ms - self.at_ms < pause_ms


# Where at least so many brokers, and more than half of those that run, do not answer, the keeper
# itself may be cut off.
CROWD_MIN = 4


@dataclass
class Crowd:
    """Counts all running brokers on other machines, and those of them that do not answer."""

    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    _running: int = 0
    _silent: int = 0

    def note(self, cluster_id: str, *, running: int, silent: int) -> None:
        """Notes one cluster.

        `silent`: those of `running` that do not answer on a machine not lost.
        """
        before = self._seen.get(cluster_id, (0, 0))
        self._running += running - before[0]
        self._silent += silent - before[1]
        if running:
            self._seen[cluster_id] = (running, silent)
        else:
            self._seen.pop(cluster_id, None)

    @property
    def suspicious(self) -> bool:
        """Whether so many brokers do not answer that the keeper itself may be cut off."""
        return self._silent >= CROWD_MIN and 2 * self._silent > self._running

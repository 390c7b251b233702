"""Whether brokers are so unwell that nothing may be deleted, and who is replaced: pure.

A broker that does not answer is replaced. Where many at once do not, it may be the keeper that is
cut off: then none is, but those whose machine is lost, of which the platform tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GuardRules:
    """From when deletions are held. Times in milliseconds.

    Held while more than `percent_max` of the brokers that should run, or more than `brokers_max` of
    them, are unhealthy, and `brokers_min` at least; released below half of that.
    """

    percent_max: int = 20
    brokers_max: int = 50
    brokers_min: int = 3
    hold_after_ms: int = 10_000
    release_after_ms: int = 60_000


@dataclass(frozen=True)
class Guard:
    """`since_ms`: since when what is seen asks for the other state; None: it does not."""

    held: bool = False
    since_ms: int | None = None


def guarded(before: Guard, *, wanted: int, unhealthy: int, now_ms: int, rules: GuardRules) -> Guard:
    """The guard after a look: neither a moment's trouble nor a moment's peace changes it."""
    if before.held:
        few = 2 * unhealthy < rules.brokers_min
        turns = few or not _too_many(2 * unhealthy, wanted, rules)
        after_ms = rules.release_after_ms
    else:
        turns = unhealthy >= rules.brokers_min and _too_many(unhealthy, wanted, rules)
        after_ms = rules.hold_after_ms
    if not turns:
        return Guard(before.held)
    # A clock that was set back begins anew.
    since_ms = now_ms if before.since_ms is None else min(before.since_ms, now_ms)
    if now_ms - since_ms >= after_ms:
        return Guard(not before.held)
    return Guard(before.held, since_ms)


def _too_many(unhealthy: int, wanted: int, rules: GuardRules) -> bool:
    return unhealthy > rules.brokers_max or 100 * unhealthy > rules.percent_max * wanted


# The pause between two replacements of a slot doubles from the first to the last of these.
PAUSE_MS = (10_000, 300_000)
# So long after its replacement a broker that serves has nothing to do with those before.
FORGIVEN_MS = 600_000


@dataclass(frozen=True)
class Replaced:
    """How often in a row a slot's broker was replaced, and when last."""

    count: int
    at_ms: int

    def again(self, now_ms: int) -> Replaced:
        """After one more."""
        count = 1 if now_ms - self.at_ms >= FORGIVEN_MS else self.count + 1
        return Replaced(count, now_ms)

    def due(self, now_ms: int) -> bool:
        """Whether the next one may be."""
        first_ms, last_ms = PAUSE_MS
        pause_ms = min(first_ms * 2 ** min(self.count - 1, 16), last_ms)
        # A clock that was set back must not keep it from being replaced.
        return not 0 <= now_ms - self.at_ms < pause_ms


# As many brokers of a cell as this, and more than half of those that run, are no coincidence.
CROWD_MIN = 4


@dataclass
class Crowd:
    """How many brokers on other machines run, of all clusters, and how many do not answer."""

    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    _running: int = 0
    _silent: int = 0

    def note(self, cluster_id: str, *, running: int, silent: int) -> None:
        """What was seen of one cluster; `silent`: those whose machine is not lost."""
        before = self._seen.get(cluster_id, (0, 0))
        self._running += running - before[0]
        self._silent += silent - before[1]
        if running:
            self._seen[cluster_id] = (running, silent)
        else:
            self._seen.pop(cluster_id, None)

    @property
    def suspicious(self) -> bool:
        """Whether so many do not answer that it may be us."""
        return self._silent >= CROWD_MIN and 2 * self._silent > self._running

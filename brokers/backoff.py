"""How long to wait before a broker is started again: pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ends:
    """How a broker ended lately, in a row: `unserved` without having served, `short` soon after."""

    unserved: int = 0
    short: int = 0


@dataclass(frozen=True)
class Backoff:
    """The first start after an end is at once, the next after `first_s` seconds, then doubling.

    A broker that never served waits up to `max_s`. One that served does somebody good as soon as it
    is back, so it waits at most `served_max_s`; and where it served for `quiet_s` it counts as
    sound, and its end as a first one.
    """

    first_s: float = 0.1
    max_s: float = 30.0
    served_max_s: float = 0.25
    quiet_s: float = 5.0

    def after(self, ends: Ends, served_s: float | None) -> Ends:
        """One more end, of a broker that served so long, or None where it did not serve."""
        if served_s is None:
            return Ends(ends.unserved + 1, ends.short)
        return Ends(0, 1 if served_s >= self.quiet_s else ends.short + 1)

    def pause_s(self, ends: Ends) -> float:
        """Seconds to wait before the next start."""
        if ends.unserved:
            return min(self._doubled(ends.unserved), self.max_s)
        return min(self._doubled(ends.short), self.served_max_s)

    def _doubled(self, count: int) -> float:
        # Bounded before the power is taken: a broker may fail for months.
        return 0.0 if count <= 1 else self.first_s * 2.0 ** min(count - 2, 32)

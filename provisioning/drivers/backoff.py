"""How long to wait before a broker is started again: pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """The first start after an end is at once, the next after `first_s` seconds, then doubling.

    A broker that served for `quiet_s` seconds counts as sound: its end is a first one again.
    """

    first_s: float = 0.1
    max_s: float = 30.0
    quiet_s: float = 5.0

    def failures_after(self, failures: int, served_s: float) -> int:
        """Ends in a row, this one included, of a broker that ended after serving so long."""
        return 1 if served_s >= self.quiet_s else failures + 1

    def pause_s(self, failures: int) -> float:
        """Seconds to wait before the next start, after so many ends in a row."""
        if failures <= 1:
            return 0.0
        # Bounded before the power is taken: a broker may fail for months.
        doublings = min(failures - 2, 32)
        return min(self.first_s * 2.0**doublings, self.max_s)

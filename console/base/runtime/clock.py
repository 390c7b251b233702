"""The clocks of a process: each gives Unix time in milliseconds that never goes back.

Which of the two a process wants depends on what it compares the time with.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

# Goes on while a laptop sleeps, where there is such a clock.
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(ABC):
    """Unix time in milliseconds that never goes back while the process runs."""

    @abstractmethod
    def now_ms(self) -> int:
        """Now."""


class SteadyClock(Clock):
    """Reads the machine's time once, and counts from there on.

    It is for whoever measures how long something lasts: when the machine's time is set, no duration
    changes.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.clock_gettime_ns(STEADY)

    def now_ms(self) -> int:
        """Now."""
        return (time.clock_gettime_ns(STEADY) + self._offset_ns) // 1_000_000


class WallClock(Clock):
    """Follows the machine's time, and stops while that is behind what was given already.

    It is for whoever compares its time with what other processes wrote by theirs, as brokers do.
    """

    def __init__(self) -> None:
        self._last_ms = 0

    def now_ms(self) -> int:
        """Now."""
        self._last_ms = max(self._last_ms, time.time_ns() // 1_000_000)
        return self._last_ms

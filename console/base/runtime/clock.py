"""The two clocks of a process. Both give Unix time in milliseconds that never goes back.

A process chooses by what it compares the time with: its own earlier times, or those of others.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

# `CLOCK_BOOTTIME`, where there is one, goes on while the machine is suspended.
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(ABC):
    """Unix time in milliseconds that never goes back while the process runs."""

    @abstractmethod
    def now_ms(self) -> int:
        """Returns the current Unix time in milliseconds."""


class SteadyClock(Clock):
    """Reads the machine's time once, and counts from there with a monotonic clock.

    It is for measuring durations: when somebody sets the machine's time, no duration changes.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.clock_gettime_ns(STEADY)

    def now_ms(self) -> int:
        """Returns the current Unix time in milliseconds."""
        return (time.clock_gettime_ns(STEADY) + self._offset_ns) // 1_000_000


class WallClock(Clock):
    """Follows the machine's time, and stands still while that is behind what it returned before.

    It is for comparing with times that other processes, such as brokers, wrote by their clocks.
    """

    def __init__(self) -> None:
        self._last_ms = 0

    def now_ms(self) -> int:
        """Returns the current Unix time in milliseconds."""
        self._last_ms = max(self._last_ms, time.time_ns() // 1_000_000)
        return self._last_ms

"""The keeper's one clock."""

from __future__ import annotations

import time

# Goes on while a laptop sleeps, where there is such a clock.
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """Unix time in milliseconds that never goes back while the keeper runs.

    Nothing that keeps data safe reads it: a wrong time costs an early or a late sleep.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.clock_gettime_ns(STEADY)

    def now_ms(self) -> int:
        """Now."""
        return (time.clock_gettime_ns(STEADY) + self._offset_ns) // 1_000_000

"""The agent's one clock."""

from __future__ import annotations

import time


class Clock:
    """Unix time in milliseconds, as the brokers' clocks; it never goes back while the agent runs.

    What is counted does not depend on it: rows of lanes have the brokers' times. It says how far
    coverage reaches, and which minutes are over.
    """

    def __init__(self) -> None:
        self._last_ms = 0

    def now_ms(self) -> int:
        """Now."""
        self._last_ms = max(self._last_ms, time.time_ns() // 1_000_000)
        return self._last_ms

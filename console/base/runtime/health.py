"""The health of a process that does its work in repeated passes, for `/healthz`.

It reads no clock: callers pass times, in seconds of any monotonic clock.
"""

from __future__ import annotations

import math


class Health:
    """Whether the last pass failed, and when one last succeeded.

    A process is not well if its last pass failed, or if none succeeded for `quiet_max_s` seconds.
    """

    def __init__(self, quiet_max_s: float = math.inf) -> None:
        self._quiet_max_s = quiet_max_s
        self._passed_at_s: float | None = None
        self.failure: str | None = None

    def passed(self, now_s: float) -> bool:
        """Notes a pass that succeeded; returns whether the one before it had failed."""
        recovered = self.failure is not None
        self.failure = None
        self._passed_at_s = now_s
        return recovered

    def failed(self, reason: str) -> bool:
        """Notes a pass that failed; returns whether its reason differs from the last failure's."""
        is_new = self.failure != reason
        self.failure = reason
        return is_new

    def reason(self, now_s: float) -> str | None:
        """Returns why the process is not well; None if it is, or if no pass has ended yet."""
        if self.failure is not None:
            return self.failure
        if self._passed_at_s is not None and now_s - self._passed_at_s > self._quiet_max_s:
            return f"no pass ended for {now_s - self._passed_at_s:.0f} s"
        return None

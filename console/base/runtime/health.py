"""Whether the passes of a process, which it makes again and again, end well: for `/healthz`.

Reads no clock: times are given, in seconds of any steady clock.
"""

from __future__ import annotations

import math


class Health:
    """The last pass, and when one ended well. `quiet_max_s`: that may be so long ago."""

    def __init__(self, quiet_max_s: float = math.inf) -> None:
        self._quiet_max_s = quiet_max_s
        self._passed_at_s: float | None = None
        self.failure: str | None = None

    def passed(self, now_s: float) -> bool:
        """A pass ended well; tells whether the one before it had failed."""
        recovered = self.failure is not None
        self.failure = None
        self._passed_at_s = now_s
        return recovered

    def failed(self, reason: str) -> bool:
        """A pass failed; tells whether the reason is news."""
        news = self.failure != reason
        self.failure = reason
        return news

    def reason(self, now_s: float) -> str | None:
        """Why it is not well; None where it is, or where nothing is known yet."""
        if self.failure is not None:
            return self.failure
        if self._passed_at_s is not None and now_s - self._passed_at_s > self._quiet_max_s:
            return f"no pass ended for {now_s - self._passed_at_s:.0f} s"
        return None

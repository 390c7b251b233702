"""Whether passes end well, for `/healthz`. Reads no clock: times are given, in seconds."""

from __future__ import annotations

# So many periods may a pass take, and so long at least.
PERIODS_MAX = 4
QUIET_MIN_S = 60.0


class Health:
    """The last pass, and when it ended."""

    def __init__(self, period_s: float) -> None:
        self._quiet_max_s = max(QUIET_MIN_S, PERIODS_MAX * period_s)
        self._failure: str | None = None
        self._passed_at_s: float | None = None

    def passed(self, now_s: float) -> bool:
        """A pass ended well; tells whether the one before it had failed."""
        recovered = self._failure is not None
        self._failure = None
        self._passed_at_s = now_s
        return recovered

    def failed(self, reason: str) -> bool:
        """A pass failed; tells whether the reason is news."""
        news = self._failure != reason
        self._failure = reason
        return news

    def reason(self, now_s: float) -> str | None:
        """Why it is not well; None where it is, or where nothing is known yet."""
        if self._failure is not None:
            return self._failure
        if self._passed_at_s is not None and now_s - self._passed_at_s > self._quiet_max_s:
            return f"no pass ended for {now_s - self._passed_at_s:.0f} s"
        return None

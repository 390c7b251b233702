"""The one limit of time that all steps of a call share."""

from __future__ import annotations

import time

from console.base.outbound.errors import CallTimedOut


class Deadline:
    """A moment by which everything must be done, and how much time is left until then."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def left_s(self, doing: str) -> float:
        """Returns the seconds that are left. Raises `CallTimedOut` once there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed(doing)
        return left

    def passed(self, doing: str) -> CallTimedOut:
        """Returns the error for a call whose time was over while it was `doing` something."""
        return CallTimedOut(
            f"The call was given up after {self._timeout_s:g} s, {doing}. Have the host answer"
            " at once, and do what takes longer afterwards."
        )

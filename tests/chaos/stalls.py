"""Finds out when this machine ran nothing of ours for a while: a busy machine, no fault."""

from __future__ import annotations

import threading
import time

LOOK_S = 0.05


class StallWatch:
    """Notes when this process did not run for longer than `stall_s` seconds."""

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        # Each with its end and how many seconds it took.
        self.stalls: list[tuple[float, float]] = []
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stalls", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._leaving.wait(LOOK_S):
            now = time.monotonic()
            if now - before > self._stall_s:
                self.stalls.append((now, now - before))
            before = now

    def stop(self) -> None:
        """Ends the watch."""
        self._leaving.set()
        self._thread.join()

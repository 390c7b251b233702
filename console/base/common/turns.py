"""Turns at what a process does few times at once, since each takes a core or much memory.

Keys (addresses, organizations) take turns: whoever asks for much waits behind everybody else.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from console.base.common.errors import Unavailable

TURN_WITHIN_S = 20.0


class Turns:
    """Lets `places` threads run at a time, and has keys take turns however many wait for one.

    Of one key at most `places_per_key` run, even where other places are free.
    """

    def __init__(self, places: int, refusal: str, *, places_per_key: int | None = None) -> None:
        """`refusal` says to people why their turn does not come."""
        self._free = places
        self._per_key = places if places_per_key is None else places_per_key
        self._refusal = refusal
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        """Runs the block once it is its turn. Raises `Unavailable` after `TURN_WITHIN_S`."""
        called = threading.Event()
        with self._lock:
            self._waiting.setdefault(key, deque()).append(called)
            self._call_next()
        if not called.wait(TURN_WITHIN_S) and self._gives_up(key, called):
            raise Unavailable(self._refusal, retry_after_s=1)
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
                self._running -= Counter([key])
                self._call_next()

    def _call_next(self) -> None:
        while self._free and (key := self._next_key()) is not None:
            queue = self._waiting.pop(key)
            self._free -= 1
            self._running[key] += 1
            queue.popleft().set()
            if queue:
                # Behind all other keys.
                self._waiting[key] = queue

    def _next_key(self) -> str | None:
        """The key that waits longest, of those that may run."""
        return next((key for key in self._waiting if self._running[key] < self._per_key), None)

    def _gives_up(self, key: str, called: threading.Event) -> bool:
        """Takes a thread out of its queue; returns False if it was called meanwhile."""
        with self._lock:
            if called.is_set():
                return False
            queue = self._waiting[key]
            queue.remove(called)
            if not queue:
                del self._waiting[key]
            return True

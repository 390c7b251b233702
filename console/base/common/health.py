"""Checks whether the parts that the control plane needs answer, such as database and queue.

An application registers the check of its part in its `AppConfig.ready`: a function that returns if
the part answers and raises if not. `/readyz` runs all checks, with one timeout for each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from django.db import connections

Check = Callable[[], None]

logger = logging.getLogger(__name__)

_checks: dict[str, Check] = {}

# For so long the results of the checks hold.
SHARED_S = 1.0


@dataclass(frozen=True, slots=True)
class Part:
    """The result of one check: the part's name, and its fault, which is empty if it answers."""

    name: str
    message: str

    @property
    def ready(self) -> bool:
        """Whether the part answers."""
        return not self.message


class _Recent:
    """The results of the last checks, for all who ask within `SHARED_S` seconds of their end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: list[Part] | None = None
        self._at = 0.0

    def parts(self, timeout_s: float) -> list[Part]:
        """Runs the checks, unless it was done a moment ago. Others who ask wait for this run."""
        with self._lock:
            if self._parts is None or time.monotonic() - self._at > SHARED_S:
                self._parts = check_parts(timeout_s=timeout_s)
                self._at = time.monotonic()
            return self._parts

    def forget(self) -> None:
        """Has the next one who asks run the checks."""
        with self._lock:
            self._parts = None


def register_check(name: str, check: Check) -> None:
    """Adds a part to `/readyz`, in place of an earlier check of that name."""
    _checks[name] = check
    _recent.forget()


def recent_parts(*, timeout_s: float) -> list[Part]:
    """As `check_parts`, but at most once a second, and once at a time, whoever asks."""
    return _recent.parts(timeout_s)


def check_parts(*, timeout_s: float) -> list[Part]:
    """Runs all checks in parallel; returns their results in the order of names.

    A check that takes longer than `timeout_s` counts as one whose part does not answer.
    """
    names = sorted(_checks)
    pool = ThreadPoolExecutor(max_workers=max(1, len(names)), thread_name_prefix="health")
    try:
        futures = {name: pool.submit(_run_check, _checks[name]) for name in names}
        wait(futures.values(), timeout=timeout_s)
        return [Part(name, _fault_of(name, futures[name], timeout_s)) for name in names]
    finally:
        # A check that hangs is not waited for: timeouts of its own end it.
        pool.shutdown(wait=False, cancel_futures=True)


_recent = _Recent()


def _run_check(check: Check) -> None:
    try:
        check()
    finally:
        connections.close_all()


def _fault_of(name: str, future: Future[None], timeout_s: float) -> str:
    """Returns what is wrong with a part for `/readyz`; empty if it answered."""
    if not future.done():
        return f"no answer within {timeout_s:g} s"
    error = future.exception()
    if error is None:
        return ""
    logger.warning("health.part_away part=%s error=%r", name, error)
    # `/readyz` is public and an error's text may have addresses or passwords: only the log has it.
    return type(error).__name__

"""Checks whether the parts that the control plane needs answer, such as database and queue.

An application registers the check of its part in its `AppConfig.ready`: a function that returns if
the part answers and raises if not. `/readyz` runs all checks, with one timeout for each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from django.db import connections

Check = Callable[[], None]

logger = logging.getLogger(__name__)

_checks: dict[str, Check] = {}


@dataclass(frozen=True, slots=True)
class Part:
    """The result of one check: the part's name, and its fault, which is empty if it answers."""

    name: str
    message: str

    @property
    def ready(self) -> bool:
        """Whether the part answers."""
        return not self.message


def register_check(name: str, check: Check) -> None:
    """Adds a part to `/readyz`, in place of an earlier check of that name."""
    _checks[name] = check


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

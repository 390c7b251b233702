"""Whether the parts that the control plane stands on answer.

An application registers the check of its part in its `AppConfig.ready`: a function that returns if
the part answers and raises if not. `/readyz` runs them all, each with the same limit of time.
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
    """A part by name, and what is wrong with it: the empty text if nothing is."""

    name: str
    message: str

    @property
    def ready(self) -> bool:
        """Tells whether it answers."""
        return not self.message


def register_check(name: str, check: Check) -> None:
    """Adds a part to `/readyz`; another check under the same name is replaced."""
    _checks[name] = check


def check_parts(*, timeout_s: float) -> list[Part]:
    """Runs every check at once, in the order of names; a part that is too slow does not answer."""
    names = sorted(_checks)
    pool = ThreadPoolExecutor(max_workers=max(1, len(names)), thread_name_prefix="health")
    try:
        futures = {name: pool.submit(_run, _checks[name]) for name in names}
        wait(futures.values(), timeout=timeout_s)
        return [Part(name, _message(name, futures[name], timeout_s)) for name in names]
    finally:
        # A check that hangs is left to itself: its own time limits end it.
        pool.shutdown(wait=False, cancel_futures=True)


def _run(check: Check) -> None:
    try:
        check()
    finally:
        connections.close_all()


def _message(name: str, future: Future[None], timeout_s: float) -> str:
    if not future.done():
        return f"no answer within {timeout_s:g} s"
    error = future.exception()
    if error is None:
        return ""
    logger.warning("health.part_away part=%s error=%r", name, error)
    # The log says more; an address or a password in the message is nobody's business.
    return type(error).__name__

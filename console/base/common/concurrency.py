"""Limits how many requests may do something slow at a time, counted over all web processes.

A request takes a place at its first wait and gives it back at its end (`waiting.py`). How places
are counted: see `places.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from console.base.common.conf import config
from console.base.common.organization_limits import limit_of_organization
from console.base.common.places import Concurrency, Count, Place, TooManyAtOnce
from console.base.common.requests import is_loopback

__all__ = [
    "Concurrency",
    "Count",
    "Place",
    "TooManyAtOnce",
    "concurrency",
    "counts_of",
    "forget_places",
    "only_one",
]

_lock = threading.Lock()
_concurrency: Concurrency | None = None


def concurrency() -> Concurrency:
    """Returns the counter of this process, which the first call makes."""
    global _concurrency  # noqa: PLW0603 (one connection pool a process)
    with _lock:
        if _concurrency is None:
            queue = config().queue
            _concurrency = Concurrency(queue.counters_url or queue.url)
        return _concurrency


def forget_places() -> None:
    """Drops the counter with all places. For tests, which share one process."""
    global _concurrency  # noqa: PLW0603
    with _lock:
        _concurrency = None


@contextmanager
def only_one(name: str, *, lasts_s: float) -> Iterator[Place | None]:
    """Yields a place that one worker has at a time, or None where another one has it.

    Whoever has it renews it before `lasts_s` seconds pass.
    """
    try:
        place = concurrency().take([Count("runs", name, 1)], lasts_s=lasts_s)
    except TooManyAtOnce:
        yield None
        return
    try:
        yield place
    finally:
        place.give_back()


def counts_of(
    name: str, *, organization_id: str | None, network: str, shared_max: int | None = None
) -> list[Count]:
    """Returns the counts of a limit for a caller: the organization's, the address's, and all.

    The limit of addresses has the name `<name>_per_address`. It does not hold for organizations
    that come from the loopback, where all addresses are one. Without an organization the address's
    count is the first. `shared_max` is the limit of all together; None for no such count.
    """
    counts = []
    if organization_id is not None:
        limit = limit_of_organization(name, organization_id)
        counts.append(Count(name, organization_id, limit))
    if organization_id is None or not is_loopback(network):
        by_address = f"{name}_per_address"
        counts.append(Count(by_address, network, int(getattr(config().limits, by_address))))
    if shared_max is not None:
        counts.append(Count(name, "all", shared_max, shared=True))
    return counts

"""Shares the worker's calls out among organizations."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from console.base.outbound.errors import TooManyCalls


class CallSlots:
    """Counts the calls that are under way, by organization.

    A call that finds no room is refused and does not wait: waiting calls of one organization would
    stand in the queue before those of all others.
    """

    def __init__(self, per_organization: int) -> None:
        self._per_organization = per_organization
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    def taken(self, organization_id: str) -> int:
        """Returns how many calls of an organization are under way."""
        with self._lock:
            return self._taken[organization_id]

    @contextmanager
    def take(self, organization_id: str) -> Iterator[None]:
        """Holds one of the organization's slots for the block. Raises `TooManyCalls`."""
        with self._lock:
            if self._taken[organization_id] >= self._per_organization:
                raise TooManyCalls(
                    f"The organization has {self._per_organization} calls under way, as many as it"
                    " may have at one time. Try again later."
                )
            self._taken[organization_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[organization_id] -= 1
                if not self._taken[organization_id]:
                    del self._taken[organization_id]

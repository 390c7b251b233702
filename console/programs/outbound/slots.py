"""Shares the workers' calls out among organizations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from console.base.common.places import Concurrency, Count, TooManyAtOnce
from console.base.outbound.calls import TIMEOUT_S_MAX
from console.base.outbound.errors import TooManyCalls

LIMIT = "outbound_calls"
# A call that takes longer counts no more: none does, so its worker has died.
LASTS_S = TIMEOUT_S_MAX + 10


class CallSlots:
    """Counts the calls that are under way, by organization, over all workers.

    A call that finds no room is refused and does not wait: waiting calls of one organization would
    stand in the queue before those of all others.
    """

    def __init__(self, per_organization: int, url: str) -> None:
        """Counts in the Redis at `url`; in this process alone if the URL is not one of Redis."""
        self._per_organization = per_organization
        self._places = Concurrency(url)

    def taken(self, organization_id: str) -> int:
        """Returns how many calls of an organization are under way."""
        return self._places.used(LIMIT, organization_id)

    @contextmanager
    def take(self, organization_id: str) -> Iterator[None]:
        """Holds one of the organization's slots for the block. Raises `TooManyCalls`."""
        count = Count(LIMIT, organization_id, self._per_organization)
        try:
            place = self._places.take([count], lasts_s=LASTS_S)
        except TooManyAtOnce as error:
            raise TooManyCalls(
                f"The organization has {self._per_organization} calls under way, as many as it may"
                " have at one time. Try again later."
            ) from error
        try:
            yield
        finally:
            place.give_back()

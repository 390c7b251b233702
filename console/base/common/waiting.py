"""Counts the requests that wait for something but PostgreSQL, by organization and by address.

A request takes its place at its first wait and gives it back at its end, so no view can forget it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connection

from console.base.common.concurrency import Count, concurrency, counts_of
from console.base.common.conf import config
from console.base.common.organization_limits import limit_of_organization
from console.base.common.places import Place
from console.base.common.transactions import RequestTransaction

# The name of the published limit.
LIMIT = "waiting_requests"
# The name of the published limit of answers that are made while they are sent.
DOWNLOADS = "downloads"
# A request that takes longer counts no more. The longest wake a cluster and make several calls.
LASTS_S = 180.0
# One that sends parts, and whose process died, counts for so long.
SENT_S = 120.0


def count_waiting(
    request: RequestTransaction, *, organization_id: str | None, network: str
) -> None:
    """Has a request count for these once it waits: that then raises `TooManyAtOnce`."""
    request.organization_id, request.network = organization_id, network
    if request.begin_waiting is None:
        request.begin_waiting = partial(_take_place, request)


async def stay_counted(place: Place) -> None:
    """Has a place last until it is given back, whether or not the client takes what it is sent."""
    while not place.is_given_back:
        await asyncio.sleep(place.lasts_s / 3)
        await asyncio.to_thread(place.renew)


class CountedParts:
    """The parts of an answer that is made while it is sent, and counts as a download meanwhile.

    Each part keeps a connection to PostgreSQL and a core for a moment, one right after the other.
    So an organization has few downloads at a time.
    """

    def __init__(self, parts: AsyncIterator[bytes], *, organization_id: str) -> None:
        """Takes a place for the organization, in its scope. Raises `TooManyAtOnce`."""
        self._parts = parts
        limit = limit_of_organization(DOWNLOADS, organization_id)
        count = Count(DOWNLOADS, organization_id, limit)
        self._place = concurrency().take([count], lasts_s=SENT_S)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the parts."""
        counting = asyncio.create_task(stay_counted(self._place))
        try:
            async for part in self._parts:
                # The client may take its time for the part.
                await sync_to_async(_close_connection)()
                yield part
        finally:
            counting.cancel()

    def close(self) -> None:
        """Gives the place back. Django calls it when the answer has been sent or given up."""
        self._place.give_back()


def _close_connection() -> None:
    # Between two parts a block is open only around a test.
    if not connection.in_atomic_block:
        close_old_connections()


def _take_place(request: RequestTransaction) -> None:
    request.begin_waiting = None
    counts = counts_of(
        LIMIT,
        organization_id=request.organization_id,
        network=request.network,
        shared_max=config().web.waiting_requests_max,
    )
    place = concurrency().take(counts, lasts_s=LASTS_S)
    request.after_end.append(place.give_back)

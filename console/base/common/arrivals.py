"""Bounds the requests that one address sends without proving who it is, before Django sees them.

A request costs most of its time before anybody knows whose it is: a thread, middleware, a session.
Requests of the API with a credential that this process knows take their organization's turns
(`turns.py`) and go by here, but for those of a kind that was refused just now (`refusals.py`). All
others are shared out by client address: pages, files, health, and the API without a known
credential. What is too much waits in the event loop, which costs little, and beyond that gets an
answer that was made before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from console.base.common.allowances import Allowances
from console.base.common.rates import WINDOW_S, Rate, RateLimited
from console.base.common.refusals import Refusal, Refusals
from console.base.common.requests import network_of, scope_address
from console.base.common.turn_keys import TurnKeys, scope_credential, turn_keys

Scope = dict[str, Any]
Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api/"
# For how many seconds' worth of requests an address may send at once, and how long others wait.
API_BURST_S = float(WINDOW_S)
PAGES_BURST_S = 3.0
WAITS_S = 2.0
# How many reads of an address are served at a time, and how many wait for that. One that takes
# longer than `COMPUTES_S` rather waits than computes, and counts no more.
SERVED_MAX = 2
WAITING_MAX = 256
COMPUTES_S = 1.0
READS = frozenset({"GET", "HEAD"})


@dataclass(slots=True)
class _Reads:
    """The reads of one address: free places, and how many have one or wait for one."""

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SERVED_MAX))
    count: int = 0


class Shares:
    """What addresses may have of one kind of requests, `per_s` of which an address gets a second.

    `policy` is the limit's name in the answer of a request that is refused.
    """

    def __init__(self, policy: str, per_s: int, burst_s: float) -> None:
        self._allowances: Allowances[str] = Allowances(burst_s)
        self._cost_s = 1 / per_s
        rate = Rate(policy, per_s * WINDOW_S, 0, 1, allowed=False)
        self._refusal = Refusal.of_error(RateLimited(rate), rate.headers)

    def take(self, network: str) -> float | None:
        """Counts a request; returns in how many seconds it may go on, or None to refuse it."""
        if self._allowances.left(network) - self._cost_s < -WAITS_S:
            return None
        self._allowances.take(network, self._cost_s)
        return self._allowances.back_in(network)

    async def refuse(self, send: Send) -> None:
        """Answers a request that is refused, in a while."""
        await self._refusal.send(send)


class ArrivalLimit:
    """An ASGI application that hands requests to the one `inside`, so many of an address.

    `uncounted` are addresses of the API that count as pages do, not as requests without a
    credential: their senders prove themselves by something else.
    """

    def __init__(
        self,
        inside: Application,
        *,
        api: Shares,
        pages: Shares,
        uncounted: Collection[str] = (),
        known: TurnKeys = turn_keys,
    ) -> None:
        self._inside = inside
        self._api = api
        self._pages = pages
        self._uncounted = frozenset(uncounted)
        self._known = known
        self._reads: dict[str, _Reads] = {}
        self._refusals = Refusals()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._inside(scope, receive, send)
            return
        if self._is_known(scope):
            refusal = self._refusals.of(scope)
            if refusal is None:
                await self._inside(scope, receive, self._refusals.watched(scope, send))
            else:
                await refusal.send(send)
            return
        path: str = scope["path"]
        network = network_of(scope_address(scope))
        is_api = path.startswith(API) and path not in self._uncounted
        shares = self._api if is_api else self._pages
        waits_s = shares.take(network)
        if waits_s is None or self._is_crowded(network):
            await shares.refuse(send)
            return
        if waits_s:
            await asyncio.sleep(waits_s)
        if scope["method"] in READS:
            await self._read(network, scope, receive, send)
        else:
            await self._inside(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        """Whether it is a request of the API by somebody whose turn it can take."""
        known = self._known.organization_of(scope_credential(scope))
        return known is not None and scope["path"].startswith(API)

    def _is_crowded(self, network: str) -> bool:
        return network in self._reads and self._reads[network].count >= WAITING_MAX

    async def _read(self, network: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request in one of the places of its address."""
        reads = self._reads.setdefault(network, _Reads())
        reads.count += 1
        try:
            await reads.places.acquire()
            # Given back once, at the request's end or before.
            held = [reads.places]
            timer = asyncio.get_running_loop().call_later(COMPUTES_S, _release, held)
            try:
                await self._inside(scope, receive, send)
            finally:
                timer.cancel()
                _release(held)
        finally:
            reads.count -= 1
            if not reads.count:
                del self._reads[network]


def _release(held: list[asyncio.Semaphore]) -> None:
    if held:
        held.pop().release()

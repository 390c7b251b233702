"""Bounds the bodies of requests before Django reads them: their size, their time, their sum.

Django reads the whole body into memory or a temporary file before our code sees the request,
however long the body is, and however slowly it comes. It checks the length beforehand only if the
client sent a `Content-Length`. Nobody has proved who they are by then, so bytes are shared out by
client address.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from console.base.common.api.problems import problem_response
from console.base.common.errors import AmbiguousLength, AppError, BodyTooLarge, Unavailable
from console.base.common.requests import is_loopback, network_of, scope_address

Scope = dict[str, Any]
Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

# How many bytes of bodies a process holds, and how many of them one address may have. A body
# counts from its first byte until its request is answered.
HELD_BYTES_MAX = 64 * 1024 * 1024
ADDRESS_SHARE = 8
ARRIVES_WITHIN_S = 60.0
# The two headers that say where a body ends.
LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


class HeldBodies:
    """The bytes of bodies that have arrived, of all requests and by address. For one event loop."""

    def __init__(self, bytes_max: int = HELD_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._held: Counter[str] = Counter()

    def take(self, network: str, size: int) -> bool:
        """Counts bytes of an address; returns False, and counts nothing, beyond what it may have.

        The share of an address does not hold on the loopback, where all addresses are one.
        """
        share = self._bytes_max if is_loopback(network) else self._bytes_max // ADDRESS_SHARE
        if self._held.total() + size > self._bytes_max or self._held[network] + size > share:
            return False
        self._held[network] += size
        return True

    def give_back(self, network: str, size: int) -> None:
        """Counts bytes no more."""
        self._held[network] -= size
        if not self._held[network]:
            del self._held[network]


class BodyLimit:
    """An ASGI application that refuses bodies, and reads no more of them, beyond its limits.

    It answers 413 to a body of more than `bytes_max`, and 503 where all bodies together, or those
    of the address, are more than `held` allows, or where the body does not arrive in
    `arrives_within_s` seconds. Every other request goes to the application `inside`.
    """

    def __init__(
        self,
        inside: Callable[[Scope, Receive, Send], Awaitable[None]],
        bytes_max: int,
        *,
        held: HeldBodies | None = None,
        arrives_within_s: float = ARRIVES_WITHIN_S,
    ) -> None:
        self._inside = inside
        self._bytes_max = bytes_max
        self._held = held or HeldBodies()
        self._arrives_within_s = arrives_within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._inside(scope, receive, send)
            return
        if {name for name, _ in scope["headers"]} >= LENGTHS:
            await send_problem(send, AmbiguousLength(), closes=True)
            return
        body = _Body(receive, asyncio.get_running_loop().time() + self._arrives_within_s)
        network = network_of(scope_address(scope))

        async def receive_bounded() -> Event:
            event = await body.receive()
            size = len(event.get("body", b""))
            if body.refusal is None and size:
                if body.size + size > self._bytes_max:
                    body.refusal = BodyTooLarge()
                elif not self._held.take(network, size):
                    body.refusal = Unavailable(
                        "Too many bodies of requests are being received.", retry_after_s=1
                    )
                else:
                    body.size += size
            # Django stops reading, and sends no answer, when the client seems to have disconnected.
            return event if body.refusal is None else {"type": "http.disconnect"}

        try:
            await self._inside(scope, receive_bounded, send)
        finally:
            if body.size:
                self._held.give_back(network, body.size)
        if body.refusal is not None:
            await send_problem(send, body.refusal)


class _Body:
    """The body of a request as it arrives, until `deadline` of the event loop's clock."""

    def __init__(self, receive: Receive, deadline: float) -> None:
        self.size = 0
        self.refusal: AppError | None = None
        self._receive = receive
        self._deadline = deadline
        self._complete = False

    async def receive(self) -> Event:
        """The next event. Sets `refusal` where the rest of the body is late."""
        if self._complete:
            # Only that the client disconnects can come, whenever it does.
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                event = await self._receive()
        except TimeoutError:
            self.refusal = Unavailable("The request's body did not arrive in time.")
            return {"type": "http.disconnect"}
        self._complete = not event.get("more_body", False)
        return event


async def send_problem(send: Send, problem: AppError, *, closes: bool = False) -> None:
    """Answers a request with a problem, outside of Django, and then `closes` its connection."""
    answer = problem_response(problem)
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    headers += [(b"connection", b"close")] if closes else []
    await send(
        {"type": "http.response.start", "status": answer.status_code, "headers": headers},
    )
    await send({"type": "http.response.body", "body": answer.content})

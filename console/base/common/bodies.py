"""Bounds the body of a request before Django reads it.

Django reads the whole body into a temporary file before our code sees the request, however long the
body is. It checks the length beforehand only if the client sent a `Content-Length`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from console.base.common.api.problems import problem_response
from console.base.common.errors import BodyTooLarge

Scope = dict[str, Any]
Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class BodyLimit:
    """An ASGI application that answers 413 to a body of more than `bytes_max`, and reads no more.

    It hands every request to the application `inside`, with a bound on the bytes that this reads.
    """

    def __init__(
        self, inside: Callable[[Scope, Receive, Send], Awaitable[None]], bytes_max: int
    ) -> None:
        self._inside = inside
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        remaining = self._bytes_max

        async def receive_bounded() -> Event:
            nonlocal remaining
            event = await receive()
            remaining -= len(event.get("body", b""))
            # Django stops reading, and sends no answer, when the client seems to have disconnected.
            return event if remaining >= 0 else {"type": "http.disconnect"}

        await self._inside(scope, receive_bounded, send)
        if remaining < 0:
            await _send_too_large(send)


async def _send_too_large(send: Send) -> None:
    answer = problem_response(BodyTooLarge())
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    await send(
        {"type": "http.response.start", "status": answer.status_code, "headers": headers},
    )
    await send({"type": "http.response.body", "body": answer.content})

"""How much of a request is taken in.

Django reads the whole body into a temporary file before anything of ours sees the request, however
long it is, and looks at its length only where the client has told it.
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

    All else is for the application inside.
    """

    def __init__(
        self, inside: Callable[[Scope, Receive, Send], Awaitable[None]], bytes_max: int
    ) -> None:
        self._inside = inside
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        left = self._bytes_max

        async def bounded() -> Event:
            nonlocal left
            event = await receive()
            left -= len(event.get("body", b""))
            # Of a client that went Django takes nothing more, and answers nothing.
            return event if left >= 0 else {"type": "http.disconnect"}

        await self._inside(scope, bounded, send)
        if left < 0:
            await _refuse(send)


async def _refuse(send: Send) -> None:
    answer = problem_response(BodyTooLarge())
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    await send(
        {"type": "http.response.start", "status": answer.status_code, "headers": headers},
    )
    await send({"type": "http.response.body", "body": answer.content})

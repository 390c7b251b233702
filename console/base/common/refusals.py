"""Refusals that are repeated without asking Django, which costs nearly what an answer does.

A refusal says in `Retry-After` when to ask again. Who does not wait for that gets the same refusal
until then, at most once a second, for all requests of the kind that was refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from console.base.common.api.problems import problem_response
from console.base.common.errors import AppError
from console.base.common.ids import new_id
from console.base.common.places import TooManyAtOnce
from console.base.common.requests import HEADER, in_request
from console.base.common.turn_keys import scope_credential

Scope = dict[str, Any]
Event = Mapping[str, Any]
Send = Callable[[Event], Awaitable[None]]

REQUEST_ID = HEADER.lower().encode()
# When a request is refused: who asks again at each answer asks only once in so long.
REFUSED_AFTER_S = 1.0
# How many refusals a process remembers, the newest.
KEPT_MAX = 4096
# What is refused by an organization's limit, whatever the request names. Other refusals are about
# one cluster or one address.
CODE = TooManyAtOnce.code.encode()
# Of a path, every other part is a name: `clusters/cl_1/topics/t/messages`.
NAMED = re.compile(r"(/[^/]+)/[^/:]+")
DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that was made once: only its id differs. `placeholder` is the id that it has."""

    headers: list[tuple[bytes, bytes]]
    body: bytes
    placeholder: bytes

    @classmethod
    def of_error(cls, error: AppError, headers: Mapping[str, str]) -> Refusal:
        """The answer to a request that is refused with an error, with further headers."""
        placeholder = new_id("req")
        with in_request(placeholder):
            answer = problem_response(error)
        named = {**answer.headers, **headers, "Cache-Control": "no-store"}
        named["Content-Length"] = str(len(answer.content))
        encoded = [(name.lower().encode(), value.encode()) for name, value in named.items()]
        return cls(encoded, answer.content, placeholder.encode())

    async def send(self, send: Send) -> None:
        """Answers a request with it, in a while."""
        await asyncio.sleep(REFUSED_AFTER_S)
        request_id = new_id("req").encode()
        headers = [(name, value) for name, value in self.headers if name != REQUEST_ID]
        headers.append((REQUEST_ID, request_id))
        status = HTTPStatus.TOO_MANY_REQUESTS
        await send({"type": "http.response.start", "status": status, "headers": headers})
        body = self.body.replace(self.placeholder, request_id)
        await send({"type": "http.response.body", "body": body})


class Refusals:
    """The refusals that hold at this moment. For one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # By kind of request: until when it holds.
        self._kept: OrderedDict[bytes, tuple[float, Refusal]] = OrderedDict()

    def of(self, scope: Scope) -> Refusal | None:
        """The refusal that holds for a request; None where it is to be served."""
        if not self._kept:
            # So it is nearly always, and each request of the API asks.
            return None
        until_s, refusal = self._kept.get(kind_of(scope), (0.0, None))
        return refusal if self._clock() < until_s else None

    def watched(self, scope: Scope, send: Send) -> Send:
        """Sends as `send` does, and remembers a refusal."""
        started: list[Event] = []

        async def watch(event: Event) -> None:
            if event["type"] == "http.response.start":
                if event["status"] == HTTPStatus.TOO_MANY_REQUESTS:
                    started.append(event)
            elif started and CODE in event.get("body", b"") and not event.get("more_body"):
                self._keep(scope, dict(started[0]["headers"]), event["body"])
            await send(event)

        return watch

    def _keep(self, scope: Scope, headers: dict[bytes, bytes], body: bytes) -> None:
        until_s = self._clock() + int(headers.get(b"retry-after", b"0"))
        kind = kind_of(scope)
        refusal = Refusal(list(headers.items()), body, headers.get(REQUEST_ID, b""))
        self._kept[kind] = (until_s, refusal)
        self._kept.move_to_end(kind)
        if len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)


def kind_of(scope: Scope) -> bytes:
    """A digest of what a request is refused with others of: credential, method, path, waiting.

    The path is without the names in it. Requests that wait for something are a kind of their own.
    """
    path = NAMED.sub(r"\1", scope["path"].removeprefix("/api/v1"))
    waits = b"wait=" in scope.get("query_string", b"")
    text = f"{scope_credential(scope)}\n{scope['method']}\n{path}\n{waits}"
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=DIGEST_BYTES).digest()

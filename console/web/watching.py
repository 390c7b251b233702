"""Watches addresses of the API for a page, and tells it by server-sent events which have changed.

A page that asked for each of its figures itself, every two seconds, would send as many requests,
and get mostly what it has. Here it sends one request that names them all; the answer goes on, and
says each time that an address was read which digest its answer has. A page that knows another one
asks again for what it shows.

A read is a request like any other: through authentication, rights, limits on rate and on
concurrency, with a transaction of its own. In between a stream has no thread and no connection to
the database: this is an ASGI application in front of Django's, which Django's view admits.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from console.base.common.places import Place
from console.base.common.waiting import stay_counted

PATH = "/api/v1/watch"
# The console sends it with what it reads, and finds the digest of the answer in it.
DIGEST = "Freshet-Digest"
# The key of an `Admission` in the scope of the request that asks Django for it.
SCOPE = "freshet.watch"
# A page opens another stream then, so that no process keeps a stream for ever.
SECONDS_MAX = 600.0
# A stream whose process died counts for so long.
COUNTED_S = 30.0
# A page hears of its stream at least so often.
HEARD_S = 10.0
# So many reads of a stream go on at a time: one that is slow does not hold up the others.
READS_MAX = 3
# What changes with every read is not compared with each: the page then asks by itself.
ALWAYS_CHANGING = 3
BYTES_MAX = 4 * 1024 * 1024
DIGEST_BYTES = 12
# Of the request's headers these would change what is read, or how.
DROPPED = {b"accept-encoding", b"accept", b"last-event-id", b"if-none-match", b"content-length"}
HEAD = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

Scope = dict[str, Any]
Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Watched:
    """An address of the API, and every how many seconds it is read."""

    pace_s: float
    address: str


@dataclass(slots=True)
class Admission:
    """What Django's view grants: a place among the streams, and what may be watched."""

    place: Place | None = None
    watched: Sequence[Watched] = ()


@dataclass(slots=True)
class InnerAnswer:
    """An answer that was read to its end: its head's event, and its body."""

    start: Event | None = None
    body: bytearray = field(default_factory=bytearray)

    @property
    def status(self) -> int:
        """The status; 0 where there was none."""
        return 0 if self.start is None else int(self.start["status"])

    @property
    def is_json(self) -> bool:
        """Whether it is an answer of the API, and no page, file or stream."""
        headers = () if self.start is None else self.start["headers"]
        kinds = [value for name, value in headers if name.lower() == b"content-type"]
        return kinds == [b"application/json"]


def digest_of(body: bytes) -> str:
    """Returns the digest of an answer's body, as hexadecimal digits."""
    return blake2b(body, digest_size=DIGEST_BYTES).hexdigest()


def digest_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Tells the console the digest of what it reads, by which it knows what a stream says of it."""

    def serve(request: HttpRequest) -> HttpResponseBase:
        return _with_digest(request, get_response(request))

    return serve


def _with_digest(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if DIGEST in request.headers and isinstance(response, HttpResponse):
        response.headers[DIGEST] = digest_of(response.content)
    return response


def headers_of_reads(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Returns the headers of a page's request with which an address is read for it."""
    headers = [pair for pair in scope["headers"] if pair[0].lower() not in DROPPED]
    return [*headers, (b"accept", b"application/json")]


class Watching:
    """An ASGI application that serves the streams, and hands all else to the one `inside`."""

    def __init__(self, inside: Application) -> None:
        self._inside = inside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "GET":
            await self._inside(scope, receive, send)
            return
        admission = Admission()
        # What Django answers is JSON: an admission, or the problem of a refusal.
        scope = {**scope, "headers": headers_of_reads(scope)}
        answer = await read({**scope, SCOPE: admission}, self._inside)
        if admission.place is None:
            await send(answer.start or {"type": "http.response.start", "status": 500})
            await send({"type": "http.response.body", "body": bytes(answer.body)})
            return
        try:
            await _Stream(self._inside, scope, admission.watched, admission.place).serve(
                receive, send
            )
        finally:
            # Not awaited: the stream may end within a cancellation.
            asyncio.get_running_loop().run_in_executor(None, admission.place.give_back)


async def read(scope: Scope, inside: Application) -> InnerAnswer:
    """Has a GET answered within this process; a body that is too long or no JSON is given up."""
    answer = InnerAnswer()
    over = asyncio.Event()
    asked = False

    async def receive() -> Event:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(event: Event) -> None:
        if event["type"] == "http.response.start":
            answer.start = event
            return
        answer.body += event.get("body", b"")
        streams = event.get("more_body", False) and not answer.is_json
        if streams or len(answer.body) > BYTES_MAX:
            answer.start = None
            over.set()

    # In a context of its own: otherwise the thread of a read would be kept for the whole stream.
    task = asyncio.create_task(_call(inside, scope, receive, send), context=contextvars.Context())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        # Cut off within, Django would leave open what it opened.
        await task
        raise
    return answer


async def _call(inside: Application, scope: Scope, receive: Receive, send: Send) -> None:
    await inside(scope, receive, send)


class _Stream:
    """One stream: the reads of its addresses, until the page goes away or the time is over."""

    def __init__(
        self, inside: Application, scope: Scope, watched: Sequence[Watched], place: Place
    ) -> None:
        self._inside = inside
        self._scope = scope
        self._watched = watched
        self._place = place
        self._reads = asyncio.Semaphore(READS_MAX)
        self._writes = asyncio.Lock()
        self._over = asyncio.Event()

    async def serve(self, receive: Receive, send: Send) -> None:
        """Sends events until the page goes away, its session ends, or `SECONDS_MAX` are over."""
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": HEAD})
        await self._write(send, "on", {})
        tasks = [
            asyncio.create_task(self._await_end(receive)),
            asyncio.create_task(stay_counted(self._place)),
            asyncio.create_task(self._stay_heard(send)),
            *(
                asyncio.create_task(self._follow(number, watched, send))
                for number, watched in enumerate(self._watched)
            ),
        ]
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await self._over.wait()
        except TimeoutError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await send({"type": "http.response.body", "body": b""})

    async def _await_end(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._over.set()

    async def _stay_heard(self, send: Send) -> None:
        while True:
            await asyncio.sleep(HEARD_S)
            # Also where nothing is read so often: a page that hears nothing asks by itself.
            await self._write(send, "on", {})

    async def _follow(self, number: int, watched: Watched, send: Send) -> None:
        """Reads an address at its pace, and says each time what its answer's digest is."""
        last, changes, passed = "", 0, 0
        while True:
            await asyncio.sleep(watched.pace_s)
            if changes >= ALWAYS_CHANGING and passed < ALWAYS_CHANGING:
                passed += 1
                await self._write(send, "seen", {number: None})
                continue
            passed = 0
            async with self._reads:
                digest = await self._digest(watched.address)
            if self._over.is_set():
                return
            changes = 0 if digest == last else changes + 1
            last = digest or ""
            await self._write(send, "seen", {number: digest})

    async def _digest(self, address: str) -> str | None:
        """Reads an address; returns None where the page has to ask by itself: it was refused, it
        failed, or its list goes on with another page.
        """
        path, _, query = address.partition("?")
        scope = {
            **self._scope,
            "path": path,
            "raw_path": path.encode("ascii"),
            "query_string": query.encode("ascii"),
        }
        answer = await read(scope, self._inside)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            # The page has another session by now, or none: with this one nothing is read any more.
            self._over.set()
        if answer.status != HTTPStatus.OK or not answer.is_json or _goes_on(answer.body):
            return None
        return digest_of(bytes(answer.body))

    async def _write(self, send: Send, kind: str, data: object) -> None:
        text = json.dumps(data, separators=(",", ":"))
        event = f"event: {kind}\ndata: {text}\n\n".encode()
        async with self._writes:
            await send({"type": "http.response.body", "body": event, "more_body": True})


def _goes_on(body: bytes | bytearray) -> bool:
    """Whether an answer is a page of a list that has another one behind it."""
    return b'"next_cursor":"' in body[-400:]

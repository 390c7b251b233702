"""Paths of requests whose parts may be names with a `/` in them, such as `groups/a%2Fb`.

A server decodes the whole path before Django sees it, which makes `groups/a/b` of this: the `/` of
the name then looks like one between parts. So the path is made here from the raw path that was
sent: each part is decoded separately, and a `/` or `%` within a part stays escaped, as `%2F` and
`%25`. Routes are matched on that path; `name_of` then decodes a part to the name.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.response import Response
from typing_extensions import override

if TYPE_CHECKING:
    # It is a database's backend, which Django imports once its settings are there.
    from console.base.common.database.base import DatabaseWrapper

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

# Browsers and proxies resolve the parts `.` and `..`, even if they are escaped. So clients send the
# names `.` and `..` with a `~` in front, and names that consist of `~` and such dots with one more.
DOTS = re.compile(r"~*\.{1,2}")


def path_of(raw_path: str) -> str:
    """Returns the path that routes are matched on, from the raw path without its query."""
    parts = (unquote(part) for part in raw_path.split("/"))
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def name_of(part: str) -> str:
    """Returns the name that a part of such a path stands for."""
    name = unquote(part)
    return name[1:] if name.startswith("~") and DOTS.fullmatch(name) else name


class PartedRequest(ASGIRequest):
    """A request whose `path` and `path_info` are made by `path_of`."""

    def __init__(self, scope: Mapping[str, Any], body_file: IO[bytes]) -> None:
        # ASGI lets servers omit `raw_path`. Then names with a `/` in them are not supported.
        raw_path = scope.get("raw_path") or quote(scope["path"]).encode()
        super().__init__({**scope, "path": path_of(raw_path.decode("ascii"))}, body_file)

    def get_full_path(self, force_append_slash: bool = False) -> str:
        """Returns path and query as a client would send them: escapes are not escaped twice."""
        path, mark, query = super().get_full_path(force_append_slash).partition("?")
        return path.replace("%25", "%") + mark + query


class PartedHandler(ASGIHandler):
    """Django's ASGI application, with requests whose paths keep their parts apart.

    A request is served in one thread from its first middleware to its last. Django would go from
    the event loop to a thread and back for each middleware, which took most of the loop's time.
    """

    request_class = PartedRequest

    @override
    def load_middleware(self, is_async: bool = False) -> None:
        """Loads the middleware for threads; no view is asynchronous."""
        super().load_middleware(is_async=False)

    @override
    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Serves a request in its thread. Streams are read by the event loop."""
        return await sync_to_async(self._serve)(request)

    def _serve(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        # From here on it is the client that decides how long the request lasts. Django would keep
        # until then the thread's connection to PostgreSQL, of which a process has few, and the
        # objects that a large answer was written from, which take several times its bytes.
        for opened in connections.all(initialized_only=True):
            del connections[opened.alias]
            cast("DatabaseWrapper", opened).dissolve()
        if isinstance(response, Response):
            response.data = None
            context = response.renderer_context  # type: ignore[attr-defined] # not in the stubs
            response.renderer_context = None  # type: ignore[attr-defined] # as above
            # They refer to each other, and would wait for the garbage collector.
            for part in (context["view"], context["request"], request):
                vars(part).clear()
        return response

    @override
    async def listen_for_disconnect(self, receive: Receive) -> None:
        """Returns once the client has gone, or has nothing more to send.

        Django raises an error, whose traceback refers to the request and to itself: both would stay
        in memory until they are collected as garbage, while everybody waits.
        """
        await receive()

    @override
    async def send_response(self, response: HttpResponseBase, send: Send) -> None:
        """Sends an answer, and frees its bytes.

        Where a client goes away, an error refers to the request and the answer, and to itself: both
        stay in memory until they are collected as garbage.
        """
        try:
            await super().send_response(response, send)
        finally:
            if isinstance(response, HttpResponse):
                response.content = b""

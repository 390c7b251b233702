"""Compresses answers: JSON and pages, for whoever takes gzip. Files of the console come compressed.

Django's own `GZipMiddleware` does it, which adds random bytes so that the length of an answer does
not betray what is secret in it. What it would do to others is left out here: events that are sent
one by one would be held back, and documents such as PDF are compressed already.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.decorators import sync_and_async_middleware

# A shorter answer fits into one packet anyhow.
BYTES_MIN = 1000
TYPES = ("application/json", "application/problem+json", "text/html")

Handler = Callable[[HttpRequest], HttpResponseBase]


@sync_and_async_middleware
def compression_middleware(get_response: Handler) -> Callable[[HttpRequest], object]:
    """Compresses what a request is answered with, where its caller takes that."""
    if iscoroutinefunction(get_response):
        answer = cast("Callable[[HttpRequest], Awaitable[HttpResponseBase]]", get_response)

        async def serve_async(request: HttpRequest) -> HttpResponseBase:
            response = await answer(request)
            if _is_worth(response):
                # In a thread: others wait for the event loop.
                await sync_to_async(_compress)(request, response)
            return response

        return serve_async

    def serve(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if _is_worth(response):
            _compress(request, response)
        return response

    return serve


def _is_worth(response: HttpResponseBase) -> bool:
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    return (
        isinstance(response, HttpResponse)
        and kind in TYPES
        and len(response.content) >= BYTES_MIN
        and "Content-Encoding" not in response.headers
    )


_gzip = GZipMiddleware(lambda _: HttpResponse())


def _compress(request: HttpRequest, response: HttpResponseBase) -> None:
    tag = response.headers.get("ETag")
    _gzip.process_response(request, response)
    if tag is not None:
        # It names a generation of a resource and not bytes of an answer, and `If-Match` repeats it.
        response.headers["ETag"] = tag

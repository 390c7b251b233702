"""Compresses answers: JSON and pages, for whoever takes gzip. Files of the console come compressed.

Django's own `GZipMiddleware` does it, which adds random bytes so that the length of an answer does
not betray what is secret in it. What it would do to others is left out here: events that are sent
one by one would be held back, and documents such as PDF are compressed already.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

# A shorter answer fits into one packet anyhow.
BYTES_MIN = 1000
TYPES = ("application/json", "application/problem+json", "text/html")

Handler = Callable[[HttpRequest], HttpResponseBase]


def compression_middleware(get_response: Handler) -> Handler:
    """Compresses what a request is answered with, where its caller takes that."""

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

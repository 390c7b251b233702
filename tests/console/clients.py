"""An HTTP client of the API that authenticates with a key."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import async_to_sync
from django.test import Client

from console.base.common.paths import path_of

PREFIX = "/api/v1"


def content_of(response: Any) -> bytes:  # noqa: ANN401 - Django's test response
    """Returns the body of a response, whether or not it is streamed."""
    if not response.streaming:
        return bytes(response.content)

    async def collect() -> bytes:
        return b"".join([part async for part in response.streaming_content])

    return async_to_sync(collect)()


def path_info(address: str) -> str:
    """Returns the `PATH_INFO` for a path: Django's test client would decode it fully.

    `console.asgi` decodes each part of a path separately; see `console.base.common.paths`.
    """
    # WSGI passes the bytes of a path as a text in Latin-1.
    return path_of(address.partition("?")[0]).encode().decode("latin-1")


class ApiClient:
    """Calls `/api/v1` with an API key, or with none. Returns Django's responses."""

    def __init__(self, key: str | None = None, client: Client | None = None) -> None:
        self.client = client or Client(raise_request_exception=False)
        self.key = key

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: dict[str, object] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - Django's test response has no public type
        """Sends a request; `path` is relative to `/api/v1`."""
        all_headers = dict(headers or {})
        if self.key is not None:
            all_headers["Authorization"] = f"Bearer {self.key}"
        address = PREFIX + path + (f"?{urlencode(query)}" if query else "")
        return self.client.generic(
            method,
            address,
            b"" if body is None else json.dumps(body).encode(),
            content_type="application/json",
            headers=all_headers,
            PATH_INFO=path_info(address),
        )

    def get(self, path: str, **options: Any) -> Any:  # noqa: ANN401
        """Sends a GET."""
        return self.request("GET", path, **options)

    def post(self, path: str, body: object = None, **options: Any) -> Any:  # noqa: ANN401
        """Sends a POST, with an empty object if there is no body."""
        return self.request("POST", path, {} if body is None else body, **options)

    def patch(self, path: str, body: object, **options: Any) -> Any:  # noqa: ANN401
        """Sends a PATCH."""
        return self.request("PATCH", path, body, **options)

    def delete(self, path: str, **options: Any) -> Any:  # noqa: ANN401
        """Sends a DELETE."""
        return self.request("DELETE", path, **options)

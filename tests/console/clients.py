"""An HTTP client of the API, with a key."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import async_to_sync
from django.test import Client

from console.base.common.paths import path_of

PREFIX = "/api/v1"


def content_of(response: Any) -> bytes:  # noqa: ANN401 - Django's test response
    """The body of an answer, of a streamed one too."""
    if not response.streaming:
        return bytes(response.content)

    async def collect() -> bytes:
        return b"".join([part async for part in response.streaming_content])

    return async_to_sync(collect)()


def path_info(address: str) -> str:
    """What Django matches routes on: its test client decodes paths as `console.asgi` does not."""
    return path_of(address.partition("?")[0]).encode().decode("latin-1")  # WSGI's form of a text


class ApiClient:
    """Calls `/api/v1` with an API key, or with none. Answers are Django's, with `.json()`."""

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
        """One request; `path` is relative to `/api/v1`."""
        given = dict(headers or {})
        if self.key is not None:
            given["Authorization"] = f"Bearer {self.key}"
        address = PREFIX + path + (f"?{urlencode(query)}" if query else "")
        return self.client.generic(
            method,
            address,
            b"" if body is None else json.dumps(body).encode(),
            content_type="application/json",
            headers=given,
            PATH_INFO=path_info(address),
        )

    def get(self, path: str, **options: Any) -> Any:  # noqa: ANN401
        """GET."""
        return self.request("GET", path, **options)

    def post(self, path: str, body: object = None, **options: Any) -> Any:  # noqa: ANN401
        """POST."""
        return self.request("POST", path, {} if body is None else body, **options)

    def patch(self, path: str, body: object, **options: Any) -> Any:  # noqa: ANN401
        """PATCH."""
        return self.request("PATCH", path, body, **options)

    def delete(self, path: str, **options: Any) -> Any:  # noqa: ANN401
        """DELETE."""
        return self.request("DELETE", path, **options)

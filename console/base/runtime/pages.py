"""Serves the pages `/metrics` and `/healthz` of a process over HTTP/1.1."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

REQUEST_TIMEOUT_S = 5.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"


class Pages:
    """Serves `/metrics` with the text of `metrics`, and `/healthz` with the state of the process.

    `healthz` returns why the process is not well, which is answered with 503, or None.
    """

    def __init__(self, metrics: Callable[[], str], healthz: Callable[[], str | None]) -> None:
        self._metrics = metrics
        self._healthz = healthz
        self._server: asyncio.Server | None = None

    async def start(self, address: str) -> str:
        """Listens on `host:port`; returns the address with its actual port. Raises `OSError`."""
        host, _, port = address.rpartition(":")
        self._server = await asyncio.start_server(self._serve, host.strip("[]"), int(port))
        bound = self._server.sockets[0].getsockname()
        return f"{host}:{bound[1]}"

    async def close(self) -> None:
        """Stops listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(
            OSError, TimeoutError, ValueError, EOFError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head.split(b"\r\n", 1)[0]))
                await writer.drain()
        writer.close()

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.split(b" ")[0].split(b"?")[0]
        if method not in {b"GET", b"HEAD"}:
            return _response("405 Method Not Allowed", TEXT_TYPE, "only GET\n", method)
        if path == b"/metrics":
            return _response("200 OK", METRICS_TYPE, self._metrics(), method)
        if path == b"/healthz":
            reason = self._healthz()
            status = "200 OK" if reason is None else "503 Service Unavailable"
            return _response(status, TEXT_TYPE, f"{reason or 'ok'}\n", method)
        return _response("404 Not Found", TEXT_TYPE, "not here\n", method)


def _response(status: str, kind: str, text: str, method: bytes) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == b"HEAD" else body)

"""Servers that answer as a broker's status does, or as a broker in a tenant's hands may."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson


def record(*, connections: int = 0, **fields: object) -> bytes:
    """A status record of a broker as JSON."""
    head = {"v": 1, "incarnation": 7, "next": "7.0.0", "connections": [9, connections], "cpu_ms": 1}
    return orjson.dumps(head | fields)


def page(content: bytes) -> bytes:
    """The answer that has this content."""
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(content), content)


@asynccontextmanager
async def answering(
    *answers: bytes | None, lasting: int = 1
) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that answers requests with these bytes, one after another, and then the last again.

    With None it does not answer. A connection ends after `lasting` requests. Yields its address,
    and a list of the requests that came.
    """
    requests: list[str] = []

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            for _ in range(lasting):
                head = await reader.readuntil(b"\r\n\r\n")
                requests.append(head.split(b" ")[1].decode())
                answer = answers[min(len(requests), len(answers)) - 1]
                if answer is None:
                    await reader.read()
                    break
                writer.write(answer)
                await writer.drain()
        finally:
            writer.close()

    handlers: list[asyncio.Future[None]] = []
    server = await asyncio.start_server(
        lambda *streams: handlers.append(asyncio.ensure_future(serve(*streams))), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"127.0.0.1:{port}", requests
    finally:
        server.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        # The transports that were closed just now call back once more.
        await asyncio.sleep(0)

"""Stands in for a cloud's load balancer: passes connections to a local port on to a pod."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

PIECE = 65_536
# Returns the (host, port) pairs of the pods that are ready.
Targets = Callable[[], Sequence[tuple[str, int]]]


class Forwarder:
    """Listens on loopback ports in a thread of its own, until `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self._turns = itertools.count()
        self._thread.start()

    def listen(self, port: int, targets: Targets) -> None:
        """Listens on a port for some pods. Raises `OSError` where the port is taken."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # `close` cancels all connections, which asyncio would otherwise log.
            with contextlib.suppress(asyncio.CancelledError):
                await self._serve(reader, writer, targets)

        async def start() -> None:
            self._servers.append(await asyncio.start_server(serve, "127.0.0.1", port))

        self._call(start())

    def close(self) -> None:
        """Stops listening, and closes all connections."""

        async def stop() -> None:
            for server in self._servers:
                server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._call(stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, targets: Targets
    ) -> None:
        with contextlib.suppress(OSError):
            addresses = await asyncio.to_thread(targets)
            if addresses:
                host, port = addresses[next(self._turns) % len(addresses)]
                inner, outer = await asyncio.open_connection(host, port)
                await asyncio.gather(_pump(reader, outer), _pump(inner, writer))
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass  # this closes the other direction too
    finally:
        writer.close()

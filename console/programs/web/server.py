"""uvicorn's server with an acceptor of our own, which bounds connections before they cost anything.

asyncio accepts whatever comes, and makes objects and a task for each connection, until the process
has no file left; then nobody is served. Here a connection that may not be is closed in the moment
in which it is accepted.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import struct
from functools import partial

from prometheus_client import Counter, Gauge
from typing_extensions import override
from uvicorn import Config, Server

from console.base.common.requests import network_of
from console.programs.web.connections import Connections
from console.programs.web.protocol import BoundedProtocol
from console.programs.web.reads import Reads

# Files that connections leave to the rest of the process: database, Redis, cells, static files.
RESERVED_FILES = 512
# So many connections are accepted before the event loop goes on with everything else.
ACCEPTED_AT_ONCE = 32
# Where the system has no file or memory for another connection, none is accepted for so long.
EXHAUSTED_S = 0.5
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
# `SO_LINGER` of no time: the connection ends by a reset, and leaves nothing in the kernel.
RESET = struct.pack("ii", 1, 0)

OPEN = Gauge("freshet_web_connections", "Open connections to the web server")
CLOSED = Counter(
    "freshet_web_connections_closed",
    "Connections to the web server that were refused, or closed to make room",
    ("reason",),
)

logger = logging.getLogger(__name__)


def connections_max(most: int) -> int:
    """Raises the process's limit of open files to the most that it may have.

    Returns how many connections it may keep with it, `most` at most.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(most, hard - min(RESERVED_FILES, hard // 2))


class BoundedServer(Server):
    """Serves `config`'s application on `listeners`, with bounds of connections.

    `of_network_max` is the most connections of one address, or None where all come from a proxy:
    then none is bounded by its address.
    """

    def __init__(
        self,
        config: Config,
        listeners: list[socket.socket],
        *,
        most: int,
        of_network_max: int | None,
    ) -> None:
        super().__init__(config)
        self._listeners = listeners
        self._by_address = of_network_max is not None
        self._connections: Connections[BoundedProtocol] = Connections(
            most, of_network_max or most, BoundedProtocol.serves
        )
        self._reads = Reads() if self._by_address else None
        self._begun: set[asyncio.Task[None]] = set()
        OPEN.set_function(lambda: len(self._connections))

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to accept."""
        # Without any, uvicorn accepts nothing itself.
        await super().startup(sockets=[])
        for listener in self._listeners:
            listener.setblocking(False)
            self._listen(listener)

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts no more, and lets requests that are under way end."""
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
        await super().shutdown(sockets=self._listeners)

    def _listen(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0 and not self.should_exit:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                logger.error("web.exhausted error=%s", error)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listener)
                loop.call_later(EXHAUSTED_S, self._listen, listener)
                return
            self._take(connection, network_of(peer[0]))

    def _take(self, connection: socket.socket, network: str) -> None:
        """Serves a connection, or closes it."""
        refusal = self._refusal(network)
        if refusal:
            CLOSED.labels(refusal).inc()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()
            return
        connection.setblocking(False)
        protocol = BoundedProtocol(
            self.config,
            self.server_state,
            self.lifespan.state,
            network=network,
            open_connections=self._connections,
            reads=self._reads,
        )
        task = asyncio.get_running_loop().create_task(self._connect(connection, protocol))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    def _refusal(self, network: str) -> str:
        """Says why an address gets no further connection; otherwise makes room, and is empty."""
        connections = self._connections
        if not connections.may_open(network, bounded=self._by_address):
            return "address"
        if self._reads is not None and not self._reads.take(network):
            return "rate"
        if connections.is_full:
            other = connections.to_close(network)
            if other is None:
                return "full"
            CLOSED.labels("room").inc()
            other.abort()
        return ""

    async def _connect(self, connection: socket.socket, protocol: BoundedProtocol) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(partial(_same, protocol), connection)
        except OSError:
            connection.close()
            protocol.abort()


def _same(protocol: BoundedProtocol) -> BoundedProtocol:
    return protocol


def listen(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Returns sockets that listen at every address of a host. Raises `OSError`.

    An empty host is every address of the machine.
    """
    kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
    addresses = socket.getaddrinfo(host or None, port, type=kind, flags=flags)
    sockets = []
    for family, *_, address in dict.fromkeys(addresses):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # Accepted sockets inherit it: parts of an answer are not kept back to be sent together.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(address)
        listener.listen(backlog)
        sockets.append(listener)
    return sockets

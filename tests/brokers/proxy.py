"""A TCP proxy that can be cut: bytes vanish, and neither end gets an error."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.ports import free_ports

PIECE = 1 << 16


class Proxy:
    """Forwards connections. While it swallows, it accepts connections and bytes, and drops them."""

    def __init__(self, server: str) -> None:
        host, port = server.rsplit(":", 1)
        self._server = host, int(port)
        [own] = free_ports(1)
        self.address = f"127.0.0.1:{own}"
        self._passes = threading.Event()
        self._passes.set()
        self._listener = socket.create_server(("127.0.0.1", own))
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """From now on nothing reaches the other end."""
        self._passes.clear()

    def heal(self) -> None:
        """New connections pass again; those that lost bytes end."""
        self._end_connections()
        self._passes.set()

    def close(self) -> None:
        """Ends it with its connections."""
        self._listener.close()
        self._end_connections()

    def _end_connections(self) -> None:
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._server)
                except ConnectionError:
                    client.close()
                    continue
                self._connections += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source, target:
            while piece := source.recv(PIECE):
                if self._passes.is_set():
                    target.sendall(piece)


@contextmanager
def cut_way(server: str) -> Iterator[Proxy]:
    """A proxy in front of `host:port`, for as long as a block lasts."""
    proxy = Proxy(server)
    try:
        yield proxy
    finally:
        proxy.close()

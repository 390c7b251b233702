"""A forwarding port that keeps what clients send."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator


class _Forward(socketserver.BaseRequestHandler):
    """One client's connection and one to the server, until both have said all."""

    server: Tap

    def handle(self) -> None:
        with socket.create_connection(self.server.target) as onward:
            answers = threading.Thread(target=pump, args=(onward, self.request, bytearray()))
            answers.start()
            pump(self.request, onward, self.server.sent)
            answers.join()


class Tap(socketserver.ThreadingTCPServer):
    """Forwards a port of the loopback to `target`. `sent` is what all clients sent so far."""

    allow_reuse_address = True

    def __init__(self, port: int, target: str) -> None:
        host, _, target_port = target.rpartition(":")
        self.target = (host, int(target_port))
        self.sent = bytearray()
        super().__init__(("127.0.0.1", port), _Forward)


def pump(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
    """Forwards all that comes in one direction, and keeps it."""
    with contextlib.suppress(OSError):  # the other side may have gone
        while data := source.recv(1 << 16):
            kept += data
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def tapped(port: int, target: str) -> Iterator[Tap]:
    """A tap for as long as the block lasts."""
    with Tap(port, target) as tap:
        serving = threading.Thread(target=tap.serve_forever)
        serving.start()
        try:
            yield tap
        finally:
            tap.shutdown()
            serving.join()

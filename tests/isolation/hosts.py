"""Hosts that tenants might choose: real sockets, real TLS, and a script for what they answer."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

# Between two pieces of an answer that trickles: less than any limit of time of a test.
PACE_S = 0.02

Script = Callable[["Visit"], None]


class Host:
    """A server that runs `script` for each connection, in a thread of its own.

    `requests` has what was read of each one, `visits` how many connections were made.
    """

    def __init__(
        self, listener: socket.socket, script: Script, tls: ssl.SSLContext | None = None
    ) -> None:
        self.script = script
        self.requests: list[bytes] = []
        self.server_names: list[str | None] = []
        self.visits = 0
        self._listener = listener
        self._tls = tls
        self._open: list[socket.socket] = []
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        if tls is not None:
            tls.sni_callback = lambda _, name, __: self.server_names.append(name)
        self._threads[0].start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.getsockname()[1])

    def drop(self) -> None:
        """Ends every connection that is open now, and goes on listening."""
        for connection in [*self._open]:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stops listening, and ends every script. Repeating it changes nothing."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                self.visits += 1
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, plain: socket.socket) -> None:
        # The client may go away at any moment, and often that is what a test is about.
        with plain, contextlib.suppress(OSError):
            if self._tls is None:
                self.script(Visit(plain, self._closing, self.requests))
                return
            with self._tls.wrap_socket(plain, server_side=True) as connection:
                self.script(Visit(connection, self._closing, self.requests))


@dataclass
class Visit:
    """One connection, as a script sees it."""

    connection: socket.socket
    closing: threading.Event
    requests: list[bytes] = field(default_factory=list)

    def read_request(self) -> None:
        """Reads a request: its head, and as much of a body as the head says."""
        request = b""
        while (part := self.connection.recv(65536)) and not _is_complete(request := request + part):
            pass
        self.requests.append(request)

    def send(self, pieces: Iterable[bytes], pace_s: float = 0.0) -> None:
        """Sends pieces until the client has gone or the host closes."""
        for piece in pieces:
            if self.closing.wait(pace_s) if pace_s else self.closing.is_set():
                return
            self.connection.sendall(piece)

    def wait_for_end(self) -> None:
        """Reads on until the client closes its side."""
        self.connection.settimeout(PACE_S)
        while not self.closing.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.connection.recv(65536):
                    return

    def wait_for_close(self) -> None:
        """Reads nothing until the host closes."""
        self.closing.wait()


def _is_complete(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return bool(end) and len(body) >= (int(length[1]) if length else 0)


def answering(answer: bytes) -> Script:
    """Reads the request and sends these bytes."""

    def script(visit: Visit) -> None:
        visit.read_request()
        visit.send([answer])

    return script


def announcing(banner: bytes) -> Script:
    """Sends these bytes before it reads anything, as servers of other protocols do."""

    def script(visit: Visit) -> None:
        visit.send([banner])
        visit.wait_for_end()

    return script


def trickling(start: bytes, piece: bytes) -> Script:
    """Reads the request, sends `start`, and then `piece` for ever, with pauses."""

    def script(visit: Visit) -> None:
        visit.read_request()
        visit.send(itertools.chain([start], itertools.repeat(piece)), PACE_S)

    return script


def flooding(start: bytes, piece: bytes) -> Script:
    """Reads the request, sends `start`, and then `piece` for ever, as fast as it can."""

    def script(visit: Visit) -> None:
        visit.read_request()
        visit.send(itertools.chain([start], itertools.repeat(piece)))

    return script


def silent(visit: Visit) -> None:
    """Reads the request and never answers."""
    visit.read_request()
    visit.wait_for_end()


def taking_nothing(visit: Visit) -> None:
    """Reads nothing of the request."""
    visit.wait_for_close()


def ok(body: bytes = b"fine", *headers: bytes) -> bytes:
    """An answer with status 200."""
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@contextlib.contextmanager
def closing_all() -> Iterator[list[Host]]:
    """A list of hosts that are closed at the end."""
    hosts: list[Host] = []
    try:
        yield hosts
    finally:
        for host in hosts:
            host.close()

"""A proxy in front of the REST interface: it counts what comes through, and can lose answers."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from typing_extensions import override

FORWARD_TIMEOUT_S = 120
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass(frozen=True)
class Passed:
    """A request that the service answered. `path` is below /api/v1, without the query."""

    method: str
    path: str
    status: int


class Door:
    """Listens on a free loopback port in front of a service. Use it as a context manager.

    `lose` is called for each request that was answered; where it returns true, the door closes the
    connection instead of passing the answer on. `seen` is called with method and path before a
    request is passed on.
    """

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.lose: Callable[[Passed], bool] = lambda _: False
        self.seen: Callable[[str, str], None] = lambda _method, _path: None
        self._passed: list[Passed] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        """The door's URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Door:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextlib.contextmanager
    def counted(self) -> Iterator[list[Passed]]:
        """Yields a list that gets the requests of the block at its end."""
        with self._lock:
            begun = len(self._passed)
        passed: list[Passed] = []
        yield passed
        with self._lock:
            passed += self._passed[begun:]

    def note(self, passed: Passed) -> bool:
        """Records an answered request. Returns whether its answer shall be lost."""
        with self._lock:
            self._passed.append(passed)
            return self.lose(passed)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        door = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A client's connection waits as long as the door's request to the service may take.
            timeout = FORWARD_TIMEOUT_S

            @override
            def log_message(self, format: str, *args: Any) -> None:
                """Logs nothing."""

            def forward(self) -> None:
                """Passes a request on, and its answer back."""
                path = urlsplit(self.path).path.removeprefix("/api/v1")
                door.seen(self.command, path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    status, headers, content = door.ask(
                        self.command, self.path, dict(self.headers.items()), body
                    )
                except (OSError, http.client.HTTPException):
                    # The service closed its connection without an answer.
                    self.close_connection = True
                    return
                if door.note(Passed(self.command, path, status)):
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers:
                    if name.lower() not in HOP:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                # The client may have gone away meanwhile.
                with contextlib.suppress(OSError):
                    self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = forward  # noqa: N815

        return Handler

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Sends one request to the service."""
        assert self.target.hostname is not None
        connection = http.client.HTTPConnection(
            self.target.hostname, self.target.port, timeout=FORWARD_TIMEOUT_S
        )
        with contextlib.closing(connection):
            kept = {name: value for name, value in headers.items() if name.lower() not in HOP}
            kept["Host"] = self.target.netloc
            connection.request(method, path, body or None, kept)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()

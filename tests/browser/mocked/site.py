"""The built console on a port of the loopback, with an API that answers from examples."""

from __future__ import annotations

import contextlib
import json
import mimetypes
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit

from console.web.pages import POLICY
from tests.browser.mocked.answers import Answer, Request, answer_to
from tests.supervisor.run import ROOT

BUILT = ROOT / "frontend/dist"
# A browser with this cookie is signed in.
COOKIE = "freshet_session"
READY = {"ready": True, "parts": {}}


@dataclass(frozen=True)
class Site:
    """Where the console is served, and what a browser that is signed in sends."""

    address: str

    @property
    def state(self) -> dict[str, object]:
        """A browser's storage with a session in it, as Playwright takes it."""
        cookie = {"name": COOKIE, "value": "of-an-example", "url": self.address}
        return {"cookies": [cookie], "origins": []}


@contextlib.contextmanager
def serving() -> Iterator[Site]:
    """Serves the console until the block ends."""
    assert (BUILT / "index.html").is_file(), "the console is not built: npm run build in frontend/"
    over = threading.Event()
    handler = type("Handler", (_Handler,), {"over": over})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Site(f"http://127.0.0.1:{server.server_port}")
        finally:
            over.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    """A file, a page of the console, or an answer of the API."""

    protocol_version = "HTTP/1.1"
    over: ClassVar[threading.Event]

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/readyz":
            self._send_json(Answer(HTTPStatus.OK, READY))
        elif path.startswith("/api/"):
            self._answer()
        elif path != "/" and (BUILT / path.removeprefix("/")).is_file():
            self._send_file(path)
        elif path.startswith("/assets/"):
            self._send(HTTPStatus.NOT_FOUND, b"", "text/plain")
        else:
            page = (BUILT / "index.html").read_bytes()
            self._send(HTTPStatus.OK, page, "text/html", {"Content-Security-Policy": POLICY})

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.rfile.read(length)
        address = urlsplit(self.path)
        cookies = SimpleCookie(self.headers.get("Cookie", ""))
        request = Request(
            self.command, address.path, dict(parse_qsl(address.query)), COOKIE in cookies
        )
        answer = answer_to(request)
        if address.path.endswith("/stream"):
            self._stream(answer)
        else:
            self._send_json(answer)

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _stream(self, answer: Answer) -> None:
        """Sends one record, then nothing until the browser leaves or the server ends."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(b"event: live\ndata: {}\n\n")
            self.wfile.write(f"data: {json.dumps(answer.body)}\n\n".encode())
            while not self.over.wait(timeout=1):
                self.wfile.write(b": nothing\n\n")

    def _send_json(self, answer: Answer) -> None:
        failed = answer.status >= HTTPStatus.BAD_REQUEST
        kind = "application/problem+json" if failed else "application/json"
        content = b"" if answer.body is None else json.dumps(answer.body).encode()
        self._send(answer.status, content, kind)

    def _send_file(self, path: str) -> None:
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        kept = {"Cache-Control": "max-age=3600, immutable"}
        self._send(HTTPStatus.OK, (BUILT / path.removeprefix("/")).read_bytes(), kind, kept)

    def _send(
        self, status: HTTPStatus, content: bytes, kind: str, more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
        # A browser that left for another page reads no more.
        with contextlib.suppress(ConnectionError):
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing: a page makes dozens of requests."""

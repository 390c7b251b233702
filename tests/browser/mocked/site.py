"""The built console on a port of the loopback, with an API that answers from examples."""

from __future__ import annotations

import contextlib
import json
import mimetypes
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit

from console.web import watching
from console.web.pages import POLICY
from tests.browser.mocked.answers import NOW, Answer, Request, answer_to
from tests.supervisor.run import ROOT

BUILT = ROOT / "frontend/dist"
# A browser with this cookie is signed in.
COOKIE = "freshet_session"
# How often a stream looks at what a page shows.
WATCH_S = 0.2
READY = {"ready": True, "parts": {}}


@dataclass
class Site:
    """Where the console is served, what a browser that is signed in sends, and what it asked for.

    While the service is `away` it takes connections, and answers nothing. `reads` has the paths of
    all reads of the API, and `watching` counts the streams that are open.
    """

    address: str = ""
    away: bool = False
    reads: list[str] = field(default_factory=list)
    watching: int = 0

    @property
    def state(self) -> dict[str, object]:
        """A browser's storage with a session in it, as Playwright takes it."""
        cookie = {"name": COOKIE, "value": "of-an-example", "url": self.address}
        return {"cookies": [cookie], "origins": []}


@contextlib.contextmanager
def serving(answer_of: Callable[[Request], Answer] = answer_to) -> Iterator[Site]:
    """Serves the console until the block ends. `answer_of` makes the answers of the API."""
    assert (BUILT / "index.html").is_file(), "the console is not built: npm run build in frontend/"
    over = threading.Event()
    site = Site()
    more = {"over": over, "site": site, "answer_of": staticmethod(answer_of)}
    handler = type("Handler", (_Handler,), more)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            site.address = f"http://127.0.0.1:{server.server_port}"
            yield site
        finally:
            over.set()
            server.shutdown()
            thread.join()


def _json_of(answer: Answer) -> bytes:
    return b"" if answer.body is None else json.dumps(answer.body).encode()


class _Handler(BaseHTTPRequestHandler):
    """A file, a page of the console, or an answer of the API."""

    protocol_version = "HTTP/1.1"
    over: ClassVar[threading.Event]
    site: ClassVar[Site]
    answer_of: ClassVar[Callable[[Request], Answer]]

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if self.site.away:
            self.close_connection = True
        elif path == watching.PATH:
            self._watch()
        elif path == "/readyz":
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
            self.command,
            address.path,
            dict(parse_qsl(address.query, keep_blank_values=True)),
            COOKIE in cookies,
        )
        if self.command == "GET":
            self.site.reads.append(address.path)
        answer = type(self).answer_of(request)
        if address.path.endswith("/stream"):
            self._stream(answer)
        else:
            self._send_json(answer)

    def _watch(self) -> None:
        """Says of each address that is named which digest its answer has, as the service does."""
        entries = [entry for _, entry in parse_qsl(urlsplit(self.path).query)]
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.site.watching += 1
        try:
            self.wfile.write(b"event: on\ndata: {}\n\n")
            while not self.site.away:
                seen = {at: self._digest_at(entry) for at, entry in enumerate(entries)}
                self.wfile.write(f"event: seen\ndata: {json.dumps(seen)}\n\n".encode())
                if self.over.wait(timeout=WATCH_S):
                    return
        except ConnectionError:
            pass
        finally:
            self.site.watching -= 1

    def _digest_at(self, entry: str) -> str:
        address = urlsplit(entry.partition(":")[2])
        request = Request(
            "GET", address.path, dict(parse_qsl(address.query, keep_blank_values=True))
        )
        return watching.digest_of(_json_of(type(self).answer_of(request)))

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
        content = _json_of(answer)
        self._send(answer.status, content, kind, {watching.DIGEST: watching.digest_of(content)})

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

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The present of the examples, which the console takes for the service's clock."""
        return super().date_time_string(datetime.fromisoformat(NOW).timestamp())

    def log_message(self, *_: object) -> None:
        """Says nothing: a page makes dozens of requests."""

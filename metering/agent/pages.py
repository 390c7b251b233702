"""`/metrics` and `/healthz` of the agent: two pages over HTTP/1.1."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
REQUEST_TIMEOUT_S = 5.0


class Pages:
    """Serves the metrics, and whether the agent is well: `healthz` gives a reason where not."""

    def __init__(self, metrics: Callable[[], str], healthz: Callable[[], str | None]) -> None:
        self._metrics = metrics
        self._healthz = healthz
        self._server: ThreadingHTTPServer | None = None

    def start(self, address: str) -> str:
        """Listens on `host:port`; gives the address that it is. Raises `OSError`."""
        host, _, port = address.rpartition(":")
        pages = self

        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_TIMEOUT_S

            def do_GET(self) -> None:
                status, kind, text = pages.answer(self.path.split("?")[0])
                body = text.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its own name)
                """Says nothing of requests."""

        server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
        server.daemon_threads = True
        self._server = server
        threading.Thread(target=server.serve_forever, name="pages", daemon=True).start()
        return f"{host}:{server.server_address[1]}"

    def close(self) -> None:
        """Listens no longer."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, path: str) -> tuple[HTTPStatus, str, str]:
        """Status, content type and text of a page."""
        if path == "/metrics":
            return HTTPStatus.OK, METRICS_TYPE, self._metrics()
        if path == "/healthz":
            reason = self._healthz()
            status = HTTPStatus.OK if reason is None else HTTPStatus.SERVICE_UNAVAILABLE
            return status, TEXT_TYPE, f"{reason or 'ok'}\n"
        return HTTPStatus.NOT_FOUND, TEXT_TYPE, "not here\n"

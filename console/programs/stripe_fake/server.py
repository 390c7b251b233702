"""The fake as an HTTP server: the API, the hosted pages and the control API on one port."""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from typing_extensions import override

from console.programs.stripe_fake.api import Api, ApiReply, ApiRequest, settle_due
from console.programs.stripe_fake.control import Control
from console.programs.stripe_fake.errors import ApiError, Json
from console.programs.stripe_fake.pages.answers import PageAnswer, gone
from console.programs.stripe_fake.pages.authentication import answer_authentication
from console.programs.stripe_fake.pages.checkout import answer_checkout
from console.programs.stripe_fake.pages.overview import answer_overview, answer_receipt
from console.programs.stripe_fake.pages.portal import answer_portal
from console.programs.stripe_fake.sandbox import Sandbox, Settings, open_sandbox
from console.programs.stripe_fake.webhooks import Sender

_BODY_BYTES_MAX = 1024 * 1024
_SILENT_S_MAX = 600.0
_POLL_S = 0.05
_PAGE_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline';"
    " frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}


class FakeServer:
    """The fake, listening on a port of the loopback (0: any free one) until `stop`.

    `state`: the file that keeps everything; None keeps it in memory. `webhook`: where events are
    sent; None leaves what an earlier run was given.
    """

    def __init__(
        self, port: int = 0, state: Path | None = None, webhook: str | None = None
    ) -> None:
        self._stopping = threading.Event()
        self._http = _Http(("127.0.0.1", port), _Handler)
        self.base = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.sandbox = open_sandbox(state, self.base)
        if webhook is not None:
            with self.sandbox.turn():
                lag_s = self.sandbox.settings().search_lag_s
                self.sandbox.set_settings(Settings(search_lag_s=lag_s, webhook=webhook))
        self._sender = Sender(self.sandbox)
        self._http.fake = self
        self.stopping = self._stopping
        self.delay_began = threading.Event()
        self._delays_over = threading.Event()
        self.api = Api(self.sandbox, self._delay)
        self.control = Control(self.sandbox, self._sender)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": _POLL_S}, daemon=True
        )

    def start(self) -> None:
        """Starts to serve and to send webhooks; returns at once."""
        self._sender.start()
        self._thread.start()

    def end_delays(self) -> None:
        """Ends what faults delay now; nothing is delayed after it."""
        self._delays_over.set()

    def _delay(self, seconds: float) -> None:
        self.delay_began.set()
        self._delays_over.wait(seconds)

    def stop(self) -> None:
        """Stops serving and sending, and closes the state."""
        self._stopping.set()
        self.end_delays()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._sender.stop()
        self.sandbox.store.close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    fake: FakeServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body in one packet: the second one would wait for the caller's delayed ACK.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Http

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _BODY_BYTES_MAX:
            self.close_connection = True
            self._send(ApiReply(413))
            return
        body = self.rfile.read(length)
        parts = urlsplit(self.path)
        if parts.path.startswith("/v1/"):
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = ApiRequest(self.command, parts.path, parts.query, body, headers)
            self._send(self.server.fake.api.answer(request))
        elif parts.path.startswith("/_fake/"):
            self._send(self._control(parts.path, body))
        else:
            self._send(self._page(parts.path, parts.query, body))

    def _control(self, path: str, body: bytes) -> ApiReply:
        status, answer = 200, {}
        try:
            given: Json = json.loads(body) if body else {}
            authorization = self.headers.get("Authorization", "")
            answer = self.server.fake.control.answer(self.command, path, authorization, given)
        except ApiError as error:
            status, answer = error.status, error.body("")
        text = json.dumps(answer).encode()
        return ApiReply(status, text, {"Content-Type": "application/json"})

    def _page(self, path: str, query: str, body: bytes) -> ApiReply:
        sandbox = self.server.fake.sandbox
        form = dict(parse_qsl(body.decode() if self.command == "POST" else query))
        with sandbox.turn():
            settle_due(sandbox)
            answer = _choose_page(sandbox, self.command, path.strip("/").split("/"), form)
        headers = dict(_PAGE_HEADERS)
        if answer.location:
            headers["Location"] = answer.location
        return ApiReply(answer.status, answer.html.encode(), headers)

    def _send(self, reply: ApiReply) -> None:
        if reply.silent:
            self.close_connection = True
            if reply.silent == "timeout":
                self._wait_for_caller()
            else:  # a reset and no orderly end, as from a proxy that died
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def _wait_for_caller(self) -> None:
        """Answers nothing until the caller gave up."""
        left_s = _SILENT_S_MAX
        while left_s > 0 and not self.server.fake.stopping.is_set():
            readable, _, _ = select.select([self.connection], [], [], _POLL_S)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return
            left_s -= _POLL_S

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: who calls logs what it needs."""


def _choose_page(
    sandbox: Sandbox, method: str, parts: list[str], form: dict[str, str]
) -> PageAnswer:
    match parts:
        case [""]:
            return answer_overview(sandbox)
        case ["checkout", _] | ["checkout", _, "return"]:
            return answer_checkout(sandbox, method, parts[1:], form)
        case ["portal", _] | ["portal", _, _]:
            return answer_portal(sandbox, method, parts[1:], form)
        case ["authenticate", _, _]:
            return answer_authentication(sandbox, method, parts[1:], form)
        case ["receipts", _]:
            return answer_receipt(sandbox, parts[1:])
        case _:
            return gone("There is no such page.")

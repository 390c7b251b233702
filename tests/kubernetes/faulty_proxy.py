"""A proxy between a driver and the API server that injects faults into requests.

Each cluster has one kind of fault, and every request about that cluster fails in this way once per
round. A request about no cluster (lists, the pulse) fails the first time, with each kind in turn.
Every second watch fails with one of the kinds for watches.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import select
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.ports import free_ports

Fault = str | int

# A time limit that a test reaches only where something is wrong.
TIMEOUT_S = 400.0
# The request takes effect, and its answer is lost, cut off, or comes after the client stopped
# waiting; it takes effect only after that; it never arrives; or it is refused.
FAULTS: tuple[Fault, ...] = (
    "answer lost",
    "answer cut",
    "answer late",
    "done late",
    "not taken",
    http.client.CONFLICT,
    http.client.TOO_MANY_REQUESTS,
    http.client.INTERNAL_SERVER_ERROR,
    http.client.SERVICE_UNAVAILABLE,
)
LATE = {"answer late", "done late"}
LIST_FAULTS = (*FAULTS, http.client.GONE)
# The watch breaks within an event, reports an expired version later or at once, or never begins.
WATCH_FAULTS: tuple[Fault, ...] = ("cut", "forgotten", http.client.GONE, "not taken")
HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class FaultyProxy:
    """Serves plain HTTP on loopback until `close`. `faults`: a kind by each cluster's namespace."""

    def __init__(self, kubeconfig: Path, faults: Mapping[str, Fault]) -> None:
        cluster = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
        self._server = urlsplit(cluster["server"])
        self._context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        # How often each kind of fault was injected; those of watches are counted separately.
        self.done: Counter[Fault] = Counter()
        self.watches_done: Counter[Fault] = Counter()
        # Whether all watches, and whether all lists are refused.
        self.no_watches = self.no_lists = False
        self._faults = faults
        self._lock = threading.Lock()
        self._seen: set[tuple[str, str]] = set()
        self._asked: set[str] = set()
        self._list_faults = itertools.cycle(LIST_FAULTS)
        self._watch_faults = itertools.chain.from_iterable(
            (fault, None) for fault in itertools.cycle(WATCH_FAULTS)
        )
        self._streams: set[socket.socket] = set()
        self._late, self._late_changed = 0, threading.Condition()
        (self._port,) = free_ports(1)
        self.open()

    @property
    def url(self) -> str:
        """The URL for the driver."""
        return f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        """Accepts connections, as it does from its start until `close`."""
        self._http = _Server(self._port, self)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Refuses new connections. Open ones break with their next request."""
        self._http.taking = False
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self.cut_watches()

    def cut_watches(self) -> None:
        """Breaks all open watches."""
        with self._lock:
            for stream in self._streams:
                with contextlib.suppress(OSError):
                    # Shuts down the socket below TLS, so that a blocked read returns.
                    socket.socket.shutdown(stream, socket.SHUT_RDWR)

    def next_round(self) -> None:
        """Has each request about a cluster fail once more, and breaks all watches."""
        with self._lock:
            self._seen.clear()
        self.cut_watches()

    @contextlib.contextmanager
    def late(self) -> Iterator[None]:
        """A context for a request that is answered after its client stopped waiting."""
        with self._late_changed:
            self._late += 1
        try:
            yield
        finally:
            with self._late_changed:
                self._late -= 1
                self._late_changed.notify_all()

    def wait_for_late_ones(self) -> None:
        """Waits until all late requests are done."""
        with self._late_changed:
            assert self._late_changed.wait_for(lambda: not self._late, TIMEOUT_S)

    def fault(self, method: str, target: str) -> Fault | None:
        """The fault for a request; None where it is passed on."""
        path, _, query = target.partition("?")
        with self._lock:
            if "watch=true" in query:
                chosen = "not taken" if self.no_watches else next(self._watch_faults)
                self.watches_done.update(() if chosen is None else (chosen,))
                return chosen
            space = next((part for part in path.split("/") if part in self._faults), None)
            if space is None and "labelSelector" in query and self.no_lists:
                return "not taken"
            if space is not None:
                # Without the pod's name: a repeated request may be about another pod of the
                # cluster.
                about = method, path.partition("/pods/")[0]
                chosen = None if about in self._seen else self._faults[space]
                self._seen.add(about)
            else:
                chosen = None if path in self._asked else next(self._list_faults)
                self._asked.add(path)
            self.done.update(() if chosen is None else (chosen,))
            return chosen

    @contextlib.contextmanager
    def asked(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], *, watch: bool
    ) -> Iterator[http.client.HTTPResponse]:
        """Sends a request to the API server and yields its answer."""
        connection = http.client.HTTPSConnection(
            str(self._server.hostname), self._server.port, context=self._context, timeout=TIMEOUT_S
        )
        with contextlib.closing(connection):
            connection.request(method, target, body or None, dict(headers))
            stream = connection.sock
            with contextlib.closing(connection.getresponse()) as response:
                try:
                    if watch:
                        with self._lock:
                            self._streams.add(stream)
                    yield response
                finally:
                    with self._lock:
                        self._streams.discard(stream)


class _Server(ThreadingHTTPServer):
    def __init__(self, port: int, proxy: FaultyProxy) -> None:
        self.proxy = proxy
        self.taking = True
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Logs nothing."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.server.taking:
            self.close_connection = True
            return
        fault = self.server.proxy.fault(self.command, self.path)
        if fault == "not taken":
            self.close_connection = True
        elif isinstance(fault, int):
            self._refuse(fault)
        elif fault in LATE:
            with self.server.proxy.late():
                self._pass_on(body, fault)
        else:
            self._pass_on(body, fault)

    def _pass_on(self, body: bytes, fault: Fault | None) -> None:
        if fault == "done late":
            self._wait_until_given_up()
        watch = "watch=true" in self.path
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
        with self.server.proxy.asked(
            self.command, self.path, body, headers, watch=watch
        ) as response:
            if watch and response.status == http.client.OK:
                self._stream(response, fault)
            else:
                self._relay(response, fault)

    def _refuse(self, status: int) -> None:
        document = {"kind": "Status", "code": status, "message": "as the test wants it"}
        self.send_response(status)
        if status == http.client.TOO_MANY_REQUESTS:
            self.send_header("Retry-After", "1")
        self._send(json.dumps(document).encode())

    def _relay(self, response: http.client.HTTPResponse, fault: Fault | None) -> None:
        data = response.read()
        if fault == "answer late":
            self._wait_until_given_up()
        if fault in {*LATE, "answer lost"}:
            self.close_connection = True
            return
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self._send(data, len(data) // 2 if fault == "answer cut" else len(data))

    def _send(self, data: bytes, sent: int | None = None) -> None:
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:sent])
        self.close_connection = sent is not None and sent < len(data)

    def _wait_until_given_up(self) -> None:
        """Waits until the client closes the connection because it stopped waiting."""
        select.select([self.connection], [], [], TIMEOUT_S)
        self.close_connection = True

    def _stream(self, response: http.client.HTTPResponse, fault: Fault | None) -> None:
        """Passes on events.

        A faulty watch passes on one, then breaks or reports an expired version.
        """
        self.close_connection = True
        self.send_response(response.status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, line in enumerate(iter(response.readline, b"")):
            if number and fault == "cut":
                self._piece(line[: len(line) // 2])
                return
            if number and fault == "forgotten":
                status = {"kind": "Status", "code": http.client.GONE, "message": "too old"}
                event = json.dumps({"type": "ERROR", "object": status})
                self._piece(f"{event}\n".encode())
                return
            self._piece(line)

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    do_GET = do_PATCH = do_DELETE = do_POST = answer  # noqa: N815 (the base names them so)

    def handle_one_request(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            super().handle_one_request()
            return
        self.close_connection = True

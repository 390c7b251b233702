"""A receiver of webhooks: keeps what comes, and answers what a test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TIMEOUT_S = 30


@dataclass
class Receiver:
    """`came` holds body and signature of each delivery.

    `statuses` are answered in turn, and 200 after them.
    """

    url: str
    came: list[tuple[bytes, str]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, body: bytes, signature: str) -> int:
        """Keeps a delivery; returns the status to answer."""
        with self.changed:
            self.came.append((body, signature))
            self.changed.notify_all()
            return self.statuses.pop(0) if self.statuses else 200

    def wait_for(self, count: int) -> list[tuple[bytes, str]]:
        """Returns what came once it is that much."""
        with self.changed:
            arrived = self.changed.wait_for(lambda: len(self.came) >= count, TIMEOUT_S)
            assert arrived, f"{len(self.came)} deliveries came, not {count}"
            return list(self.came)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Runs a receiver on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(body, self.headers["Stripe-Signature"])
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name)
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}/webhooks")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

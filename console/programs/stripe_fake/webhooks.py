"""Deliveries of events: signed as Stripe signs them, and tried again until one answers 2xx."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import threading
import time
from urllib.parse import urlsplit

from console.programs.stripe_fake.errors import Json
from console.programs.stripe_fake.keys import WEBHOOK_SECRET
from console.programs.stripe_fake.sandbox import Sandbox
from console.programs.stripe_fake.store import Delivery

TIMEOUT_S = 10.0
ATTEMPTS_MAX = 16
_WAIT_FIRST_S, _WAIT_MAX_S = 1.0, 60.0
_STALE_S = 3600
_FORGED_SECRET = "whsec_of_an_attacker"  # noqa: S105 (signs what must be refused)


def signature(body: str, *, secret: str, at: int) -> str:
    """Returns the header `Stripe-Signature` of a body that is signed at a Unix time."""
    digest = hmac.new(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def headers_of(delivery: Delivery) -> dict[str, str]:
    """Returns the headers of a delivery that is sent now, with its flaw."""
    secret = _FORGED_SECRET if delivery.flaw == "forged" else WEBHOOK_SECRET
    at = int(time.time()) - (_STALE_S if delivery.flaw == "stale" else 0)
    return {
        "Content-Type": "application/json; charset=utf-8",
        "Stripe-Signature": signature(delivery.body, secret=secret, at=at),
        "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
    }


def take_due(sandbox: Sandbox) -> list[Json]:
    """Returns the waiting deliveries that are due, signed, in their order, for a caller that
    sends them itself and then says how each was answered (`settle_delivery`).
    """
    return [
        {
            "id": delivery.seq,
            "event": delivery.event,
            "flaw": delivery.flaw,
            "body": delivery.body,
            "headers": headers_of(delivery),
        }
        for delivery in sandbox.store.deliveries(["waiting"], time.time())
    ]


def settle_delivery(sandbox: Sandbox, delivery: Delivery, status: int | None) -> None:
    """Notes how an attempt was answered (None: not at all); what failed is due again later."""
    delivery.attempts += 1
    delivery.status = status
    if status is not None and 200 <= status < 300:
        delivery.state = "done"
    elif delivery.flaw or delivery.attempts >= ATTEMPTS_MAX:
        delivery.state = "failed"  # an attacker does not try again
    else:
        wait_s = min(_WAIT_MAX_S, _WAIT_FIRST_S * 2 ** (delivery.attempts - 1))
        delivery.due_at = time.time() + wait_s
    sandbox.store.write_delivery(delivery)


class Sender:
    """A thread that sends what is due to the address in the settings."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._wake = threading.Event()
        self._sending = threading.Lock()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        """Starts the thread, which is woken whenever something was queued."""
        self._sandbox.on_delivery = self._wake.set
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread; what is being sent is sent to its end."""
        self._stopped = True
        self._wake.set()
        self._thread.join(TIMEOUT_S + 1)

    def _run(self) -> None:
        while not self._stopped:
            self._wake.clear()
            due_at = self.send_due()
            wait_s = None if due_at is None else max(0.0, due_at - time.time())
            self._wake.wait(wait_s)

    def send_due(self, *, at_once: bool = False) -> float | None:
        """Sends what is due, or all that waits; returns when the next one is due.

        Returns None where nothing waits, or there is no address to send it to.
        """
        with self._sending:  # a delivery that is being sent is sent by nobody else
            with self._sandbox.turn():
                address = self._sandbox.settings().webhook
                limit = None if at_once else time.time()
                due = self._sandbox.store.deliveries(["waiting"], limit) if address else []
            for delivery in due:
                if self._stopped:
                    return None
                status = post(address, delivery.body.encode(), headers_of(delivery))
                with self._sandbox.turn():
                    settle_delivery(self._sandbox, delivery, status)
            with self._sandbox.turn():
                return self._sandbox.store.next_due_at() if address else None


def post(address: str, body: bytes, headers: dict[str, str]) -> int | None:
    """Posts to an address; returns the status, or None where nothing answered in time."""
    parts = urlsplit(address)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", parts.path or "/", body, headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()

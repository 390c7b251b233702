"""The fake of Stripe for any test: a server on a free port, and what a test does with it.

`running_fake()` starts one. A test reads `charges()` to count what was really taken, sets faults,
moves the clock, and visits the hosted pages as a browser does.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from console.programs.stripe_fake.errors import ApiError, Json
from console.programs.stripe_fake.keys import CONTROL_TOKEN, SECRET_KEY, WEBHOOK_SECRET
from console.programs.stripe_fake.server import FakeServer

VISA = "4242424242424242"
MASTERCARD = "5555555555554444"
DECLINED = "4000000000000002"
INSUFFICIENT_FUNDS = "4000000000009995"
DECLINES_CHARGES = "4000000000000341"
AUTHENTICATED_WHEN_SAVED = "4000002500003155"
AUTHENTICATED_ALWAYS = "4000002760003184"
DISPUTED = "4000000000000259"
REFUND_PENDS = "4000000000007726"
REFUND_FAILS = "4000000000005126"


@dataclass(frozen=True, slots=True)
class Visit:
    """What a hosted page answered a browser that follows no redirect."""

    status: int
    html: str
    location: str


class FakeStripe:
    """A running fake. `base`, `key` and `secret` are what the service's settings name."""

    key = SECRET_KEY
    secret = WEBHOOK_SECRET
    # What the control API raises where it refuses something.
    Refused = ApiError

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.base = server.base

    def control(self, method: str, path: str, body: Json | None = None) -> Json:
        """Calls the control API (`console.programs.stripe_fake.control` lists its paths)."""
        authorization = f"Bearer {CONTROL_TOKEN}"
        return self.server.control.answer(method, f"/_fake/{path}", authorization, body or {})

    # Faults and the clock

    def add_fault(self, kind: str, **details: object) -> None:
        """Adds a fault of answers: `path`, `method` and `count` say of which, and how often."""
        self.control("POST", "faults", {"kind": kind, **details})

    def add_webhook_fault(self, kind: str, types: str = "*", **details: object) -> None:
        """Adds a fault of webhooks: `types` and `count` say of which, and how often."""
        self.control("POST", "faults", {"kind": kind, "on": "webhooks", "types": types, **details})

    def clear_faults(self) -> None:
        """Removes all faults."""
        self.control("DELETE", "faults")

    def set_time(self, now_s: float) -> None:
        """Stops the clock at a Unix time."""
        self.control("POST", "clock", {"now": now_s, "rate": 0})

    def advance(self, seconds: float) -> None:
        """Moves the clock on, and ends what ends meanwhile."""
        self.control("POST", "clock", {"advance_s": seconds})

    # What is there

    def objects(self, kind: str) -> list[Json]:
        """Returns every object of a kind, oldest first."""
        data: list[Json] = self.control("GET", f"objects/{kind}")["data"]
        return data

    def charges(self, *, paid: bool = True) -> list[Json]:
        """Returns the charges that succeeded, or all."""
        return [charge for charge in self.objects("charge") if charge["paid"] or not paid]

    def change_card(self, method_id: str, **changes: object) -> None:
        """Changes how a saved card answers: `declines` (a code or None), `processing_s`."""
        self.control("POST", f"payment_methods/{method_id}", changes)

    def dispute(self, charge_id: str, *, inquiry: bool = False) -> Json:
        """Opens a dispute of a charge."""
        return self.control("POST", "disputes", {"charge": charge_id, "inquiry": inquiry})

    def close_dispute(self, dispute_id: str, *, won: bool) -> Json:
        """Ends a dispute."""
        return self.control("POST", f"disputes/{dispute_id}/close", {"won": won})

    # Webhooks, which a test passes on itself

    def take_webhooks(self) -> list[Json]:
        """Returns what is due: `id`, `event`, `flaw`, `body` and `headers`, in its order."""
        data: list[Json] = self.control("POST", "deliveries/take")["data"]
        return data

    def settle_webhook(self, number: int, status: int | None) -> None:
        """Says how a webhook was answered; one that was not answered by 2xx is due again."""
        self.control("POST", f"deliveries/{number}", {"status": status})

    # Hosted pages

    def visit(self, url: str, form: dict[str, str] | None = None) -> Visit:
        """Gets a hosted page, or posts a form to it."""
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        try:
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            if form is None:
                connection.request("GET", target)
            else:
                headers = {"Content-Type": "application/x-www-form-urlencoded"}
                connection.request("POST", target, urlencode(form), headers)
            answer = connection.getresponse()
            location = answer.getheader("Location", "")
            return Visit(answer.status, answer.read().decode(), location)
        finally:
            connection.close()

    def give_card(self, checkout_url: str, number: str = VISA) -> Visit:
        """Types a card on Checkout's page, approves what its bank asks, and goes on to the last
        redirect, which leads away from the fake.
        """
        visit = self.visit(checkout_url, {"number": number, "expiry": "12/34", "cvc": "123"})
        while visit.location.startswith(self.base):
            visit = (
                self.authenticate(visit.location)
                if "/authenticate/" in visit.location
                else self.visit(visit.location)
            )
        return visit

    def authenticate(self, url: str, *, approve: bool = True) -> Visit:
        """Approves, or refuses, what a card's bank asks for."""
        return self.visit(url, {"outcome": "succeed" if approve else "fail"})


@contextmanager
def running_fake(state: Path | None = None, webhook: str | None = None) -> Iterator[FakeStripe]:
    """Runs a fake; `state` is its file (None: in memory), `webhook` where it sends events."""
    server = FakeServer(0, state, webhook)
    server.start()
    try:
        yield FakeStripe(server)
    finally:
        server.stop()

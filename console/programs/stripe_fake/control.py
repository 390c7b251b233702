"""The control API, `/_fake/…`: what no payment service offers. JSON in and out, its own token.

| Path | |
|---|---|
| `clock` | GET; POST `now`, `advance_s`, `rate` (0 stops it) |
| `settings` | GET; POST `search_lag_s`, `webhook` (an address, or empty) |
| `faults` | GET; POST a fault; DELETE all |
| `objects/<kind>` | GET every object of a kind (`charge`, `payment_intent`, …), oldest first |
| `payment_methods/<id>` | POST `declines` (a decline code or null), `processing_s` |
| `disputes` | POST `charge`, `reason`, `inquiry` |
| `disputes/<id>/close` | POST `won` |
| `deliveries` | GET all webhooks and what became of them |
| `deliveries/take` | POST: what is due, signed, for a caller that sends it itself |
| `deliveries/<id>` | POST `status`: how it was answered (null: not at all) |
| `deliveries/flush` | POST: send all that waits now, without its delay |
| `deliveries/release` | POST: what a fault `hold` held waits again |
| `events/<id>/resend` | POST: send an event once more |
| `events/<id>/forge` | POST: send a forged event of the same content |

A fault: `kind`, `count` (null: until it is removed; default 1), and for answers `method` and
`path` (`*` matches anything), for webhooks `on: "webhooks"` and `types`; `seconds` of a `delay`,
`copies` of a `duplicate`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from console.programs.stripe_fake.api import settle_due, visible_answer
from console.programs.stripe_fake.errors import ApiError, Json, ParameterError
from console.programs.stripe_fake.faults import OF_ANSWERS, OF_WEBHOOKS
from console.programs.stripe_fake.keys import CONTROL_TOKEN
from console.programs.stripe_fake.objects import disputes
from console.programs.stripe_fake.sandbox import Sandbox
from console.programs.stripe_fake.store import Delivery
from console.programs.stripe_fake.webhooks import Sender, settle_delivery, take_due

Handler = Callable[..., Json]


class Control:
    """Answers the control API."""

    def __init__(self, sandbox: Sandbox, sender: Sender) -> None:
        self._sandbox = sandbox
        self._sender = sender

    def answer(self, method: str, path: str, authorization: str, body: Json) -> Json:
        """Answers one request; raises `ApiError`."""
        given = authorization.removeprefix("Bearer ").encode()
        if not hmac.compare_digest(given, CONTROL_TOKEN.encode()):
            raise ApiError(401, "The control API has a token of its own.")
        parts = path.removeprefix("/_fake/").split("/")
        if parts == ["deliveries", "flush"] and method == "POST":
            self._sender.send_due(at_once=True)
            method, parts = "GET", ["deliveries"]
        with self._sandbox.turn():
            settle_due(self._sandbox)
            answer = self._choose(method, parts, body)
            settle_due(self._sandbox)
        return answer

    def _choose(self, method: str, parts: list[str], body: Json) -> Json:
        handlers: dict[tuple[str, ...], Handler] = {
            ("GET", "clock"): self._show_clock,
            ("POST", "clock"): self._set_clock,
            ("GET", "settings"): lambda: asdict(self._sandbox.settings()),
            ("POST", "settings"): self._set_settings,
            ("GET", "faults"): lambda: {"data": self._sandbox.store.faults()},
            ("POST", "faults"): self._add_fault,
            ("DELETE", "faults"): self._remove_faults,
            ("GET", "objects", ""): self._list_objects,
            ("POST", "payment_methods", ""): self._change_method,
            ("POST", "disputes"): self._open_dispute,
            ("POST", "disputes", "", "close"): self._close_dispute,
            ("GET", "deliveries"): self._list_deliveries,
            ("POST", "deliveries", "take"): lambda: {"data": take_due(self._sandbox)},
            ("POST", "deliveries", "release"): self._release,
            ("POST", "deliveries", ""): self._settle_delivery,
            ("POST", "events", "", "resend"): self._resend,
            ("POST", "events", "", "forge"): self._forge,
        }
        for (verb, *names), handler in handlers.items():
            if verb == method and len(names) == len(parts):
                pairs = list(zip(names, parts, strict=True))
                if all(name in {"", part} for name, part in pairs):
                    ids = [part for name, part in pairs if not name]
                    return _call(handler, ids, body)
        raise ApiError(404, f"There is no {method} /_fake/{'/'.join(parts)}.")

    def _show_clock(self) -> Json:
        clock = self._sandbox.clock()
        return {"now": clock.now(), "rate": clock.rate}

    def _set_clock(
        self, now: float | None = None, advance_s: float = 0, rate: float | None = None
    ) -> Json:
        moved = self._sandbox.clock().moved(now_s=now, advance_s=advance_s, rate=rate)
        self._sandbox.set_clock(moved)
        return self._show_clock()

    def _set_settings(self, **changes: Any) -> Json:  # noqa: ANN401 (JSON)
        self._sandbox.set_settings(replace(self._sandbox.settings(), **changes))
        self._sandbox.on_delivery()
        return asdict(self._sandbox.settings())

    def _add_fault(
        self,
        kind: str,
        on: str = "answers",
        count: int | None = 1,
        **details: Any,  # noqa: ANN401 (JSON)
    ) -> Json:
        known = {"answers": OF_ANSWERS, "webhooks": OF_WEBHOOKS}.get(on, frozenset())
        if kind not in known:
            raise ParameterError(f"There is no fault {kind} of {on}.", param="kind")
        defaults = {"method": "*", "path": "*"} if on == "answers" else {"types": "*"}
        number = self._sandbox.store.add_fault(
            {"kind": kind, "on": on, **defaults, **details}, count
        )
        return next(f for f in self._sandbox.store.faults() if f["id"] == number)

    def _remove_faults(self) -> Json:
        self._sandbox.store.remove_fault(None)
        return {"data": []}

    def _list_objects(self, kind: str) -> Json:
        return visible_answer({"data": self._sandbox.store.select(kind, newest_first=False)})

    def _change_method(self, method_id: str, **changes: Any) -> Json:  # noqa: ANN401 (JSON)
        method = self._sandbox.load("payment_method", method_id)
        method.update({f"_{name}": value for name, value in changes.items()})
        return self._sandbox.save(method)

    def _open_dispute(
        self, charge: str, reason: str = "fraudulent", *, inquiry: bool = False
    ) -> Json:
        if reason not in disputes.REASONS:
            raise ParameterError(f"There is no reason {reason}.", param="reason")
        body = self._sandbox.load("charge", charge, "charge")
        return disputes.open_dispute(self._sandbox, body, reason, inquiry=inquiry)

    def _close_dispute(self, dispute_id: str, *, won: bool) -> Json:
        body = self._sandbox.load("dispute", dispute_id)
        return disputes.close_dispute(self._sandbox, body, won=won)

    def _list_deliveries(self) -> Json:
        states = ("waiting", "held", "done", "dropped", "failed")
        return {"data": [asdict(d) for d in self._sandbox.store.deliveries(states)]}

    def _release(self) -> Json:
        for delivery in self._sandbox.store.deliveries(["held"]):
            delivery.state = "waiting"
            self._sandbox.store.write_delivery(delivery)
        self._sandbox.on_delivery()
        return self._list_deliveries()

    def _settle_delivery(self, number: str, status: int | None) -> Json:
        delivery = self._delivery(number)
        settle_delivery(self._sandbox, delivery, status)
        return asdict(delivery)

    def _delivery(self, number: str) -> Delivery:
        for delivery in self._sandbox.store.deliveries(["waiting", "held"]):
            if str(delivery.seq) == number:
                return delivery
        raise ApiError(404, f"No delivery {number} waits.", code="resource_missing")

    def _resend(self, event_id: str) -> Json:
        event = self._sandbox.load("event", event_id)
        self._sandbox.resend(event)
        return event

    def _forge(self, event_id: str) -> Json:
        event = self._sandbox.load("event", event_id)
        self._sandbox.forge(event)
        return event


def _call(handler: Handler, ids: list[str], body: Json) -> Json:
    try:
        return handler(*ids, **body)
    except TypeError as error:
        raise ParameterError(str(error)) from error

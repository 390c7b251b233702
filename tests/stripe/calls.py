"""The calls that collecting invoices needs, as the `stripe` package makes them.

They are made to the fake and to stripe-mock alike: a call uses ids that earlier ones answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import stripe

# It would keep an id of this machine in the home folder, and send it along.
stripe.enable_telemetry = False

Made = dict[str, Any]
# The services of the package, whose types are of one version of it.
V1 = Any
BACK = "https://console.example.com/billing"


def client_of(base: str, key: str, *, retries: int = 0, timeout_s: float = 20) -> V1:
    """Returns a client of the API at an address."""
    addresses: Any = {"api": base}
    return stripe.StripeClient(
        key,
        base_addresses=addresses,
        max_network_retries=retries,
        http_client=stripe.RequestsClient(timeout=timeout_s),
    ).v1


def error_of(raised: Any) -> Any:  # noqa: ANN401 (what pytest caught, a class of the package)
    """Returns the error in an answer of 4xx or 5xx, as the package shows it."""
    return raised.value.error


def _customers(v1: V1, made: Made) -> Iterator[tuple[str, Any]]:
    params = {"name": "Ada", "email": "ada@example.com", "metadata": {"organization": "org_1"}}
    yield "customer", v1.customers.create(params)
    customer = made["customer"].id
    yield "customer updated", v1.customers.update(customer, {"description": "Two organizations"})
    yield "customer retrieved", v1.customers.retrieve(customer)
    yield "customers", v1.customers.list({"limit": 3, "email": "ada@example.com"})
    query = {"query": "metadata['organization']:'org_1'"}
    yield "customers searched", v1.customers.search(query)


def _cards(v1: V1, made: Made) -> Iterator[tuple[str, Any]]:
    customer = made["customer"].id
    yield "method", v1.payment_methods.attach("pm_card_visa", {"customer": customer})
    method = made["method"].id
    default = {"invoice_settings": {"default_payment_method": method}}
    yield "customer with default", v1.customers.update(customer, default)
    yield "method retrieved", v1.payment_methods.retrieve(method)
    yield "methods", v1.payment_methods.list({"customer": customer, "type": "card"})
    yield "methods of customer", v1.customers.payment_methods.list(customer, {"limit": 5})
    session = {
        "mode": "setup",
        "customer": customer,
        "currency": "usd",
        "success_url": f"{BACK}?session={{CHECKOUT_SESSION_ID}}",
        "cancel_url": BACK,
        "metadata": {"organization": "org_1"},
    }
    yield "checkout", v1.checkout.sessions.create(session)
    checkout = made["checkout"].id
    yield "checkout retrieved", v1.checkout.sessions.retrieve(checkout)
    yield "checkouts", v1.checkout.sessions.list({"customer": customer})
    yield "checkout expired", v1.checkout.sessions.expire(checkout)
    yield "setup", v1.setup_intents.create({"customer": customer, "usage": "off_session"})
    setup = made["setup"].id
    yield "setup confirmed", v1.setup_intents.confirm(setup, {"payment_method": method})
    yield "setup retrieved", v1.setup_intents.retrieve(setup)
    yield "setups", v1.setup_intents.list({"customer": customer})
    portal = {"customer": customer, "return_url": BACK}
    yield "portal", v1.billing_portal.sessions.create(portal)


def _payments(v1: V1, made: Made) -> Iterator[tuple[str, Any]]:
    customer, method = made["customer"].id, made["method"].id
    payment = {
        "amount": 1250,
        "currency": "usd",
        "customer": customer,
        "payment_method": method,
        "allowed_payment_method_types": ["card"],
        "confirm": True,
        "off_session": True,
        "description": "Invoice 2026-1",
        "metadata": {"attempt": "att_1"},
    }
    once = {"idempotency_key": "inv:1:pay:1"}
    yield "payment", v1.payment_intents.create(payment, once)
    intent = made["payment"].id
    yield "payment retrieved", v1.payment_intents.retrieve(intent)
    described = {"description": "Invoices 2026-1 and 2026-2"}
    yield "payment updated", v1.payment_intents.update(intent, described)
    yield "payments", v1.payment_intents.list({"customer": customer, "created": {"gte": 1}})
    query = {"query": "metadata['attempt']:'att_1' AND status:'succeeded'"}
    yield "payments searched", v1.payment_intents.search(query)
    later = {"amount": 900, "currency": "eur", "customer": customer}
    yield "second payment", v1.payment_intents.create({**later, "payment_method": method})
    second = made["second payment"].id
    yield "payment confirmed", v1.payment_intents.confirm(second, {"return_url": BACK})
    yield "third payment", v1.payment_intents.create(later)
    third = made["third payment"].id
    reason = {"cancellation_reason": "abandoned"}
    yield "payment canceled", v1.payment_intents.cancel(third, reason)
    yield "charges", v1.charges.list({"payment_intent": intent})
    yield "charge", v1.charges.retrieve(made["charges"].data[0].id)


def _returns(v1: V1, made: Made) -> Iterator[tuple[str, Any]]:
    intent, charge = made["payment"].id, made["charge"].id
    refund = {"payment_intent": intent, "amount": 50, "reason": "requested_by_customer"}
    yield "refund", v1.refunds.create({**refund, "metadata": {"refund": "re_1"}})
    yield "refund retrieved", v1.refunds.retrieve(made["refund"].id)
    yield "refunds", v1.refunds.list({"charge": charge})
    yield "disputes", v1.disputes.list({"created": {"gte": 1, "lt": 4_000_000_000}})
    yield "movements", v1.balance_transactions.list({"source": charge})
    yield "events", v1.events.list({"types": ["charge.succeeded", "refund.created"]})
    yield "event", v1.events.retrieve(made["events"].data[0].id)
    yield "method detached", v1.payment_methods.detach(made["method"].id)
    yield "customer deleted", v1.customers.delete(made["customer"].id)


def make_calls(v1: V1) -> Made:
    """Makes all calls; returns the answers by the calls' names."""
    made: Made = {}
    for part in (_customers, _cards, _payments, _returns):
        for name, answer in part(v1, made):
            made[name] = answer
    return made


# Requests that must be refused: by name, what is called, with which parameter in the error.
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "unknown": (lambda v1: v1.customers.create({"colour": "red"}), "colour"),
    "unknown within": (
        lambda v1: v1.customers.create({"address": {"planet": "Mars"}}),
        "planet",
    ),
    "unknown of payment": (
        lambda v1: v1.payment_intents.create({"amount": 100, "currency": "usd", "invoices": "1"}),
        "invoices",
    ),
    "missing amount": (lambda v1: v1.payment_intents.create({"currency": "usd"}), "amount"),
    "missing customer": (
        lambda v1: v1.payment_methods.attach("pm_card_visa", {}),
        "customer",
    ),
    "unknown of list": (lambda v1: v1.refunds.list({"customer": "cus_1"}), "customer"),
    "not a number": (
        lambda v1: v1.refunds.create({"charge": "ch_1", "amount": "all"}),
        "amount",
    ),
    "not a choice": (
        lambda v1: v1.refunds.create({"charge": "ch_1", "reason": "boredom"}),
        "reason",
    ),
}

"""Charges: one attempt to take an amount from a card, which succeeded or failed."""

from __future__ import annotations

from console.programs.stripe_fake.endpoints import listing, retrieve, searching
from console.programs.stripe_fake.errors import CardDeclined, Json
from console.programs.stripe_fake.forms import Text
from console.programs.stripe_fake.objects import balance
from console.programs.stripe_fake.sandbox import Sandbox

_DESCRIPTOR = "FRESHET"


def record_charge(
    sandbox: Sandbox, intent: Json, method: Json, declined: CardDeclined | None
) -> Json:
    """Stores the charge of a payment intent, and its movement of money where it succeeded."""
    paid = declined is None
    body: Json = {
        "id": sandbox.make_id("ch_"),
        "object": "charge",
        "amount": intent["amount"],
        "amount_captured": intent["amount"] if paid else 0,
        "amount_refunded": 0,
        "application": None,
        "application_fee": None,
        "application_fee_amount": None,
        "balance_transaction": None,
        "billing_details": method["billing_details"],
        "calculated_statement_descriptor": _DESCRIPTOR,
        "captured": paid,
        "created": sandbox.now(),
        "currency": intent["currency"],
        "customer": intent["customer"],
        "description": intent["description"],
        "disputed": False,
        "failure_balance_transaction": None,
        "failure_code": None if declined is None else declined.code,
        "failure_message": None if declined is None else str(declined),
        "fraud_details": {},
        "livemode": False,
        "metadata": intent["metadata"],
        "on_behalf_of": None,
        "outcome": _outcome(declined),
        "paid": paid,
        "payment_intent": intent["id"],
        "payment_method": method["id"],
        "payment_method_details": _method_details(method),
        "receipt_email": intent["receipt_email"],
        "receipt_number": None,
        "receipt_url": None,
        "refunded": False,
        "review": None,
        "shipping": None,
        "source": None,
        "source_transfer": None,
        "statement_descriptor": None,
        "statement_descriptor_suffix": intent["statement_descriptor_suffix"],
        "status": "succeeded" if paid else "failed",
        "transfer_data": None,
        "transfer_group": None,
    }
    if paid:
        body["receipt_url"] = f"{sandbox.base}/receipts/{body['id']}"
        fee = balance.charge_fee(body["amount"])
        movement = balance.record_movement(sandbox, body, "charge", body["amount"], fee=fee)
        body["balance_transaction"] = movement["id"]
    sandbox.add(body)
    sandbox.emit("charge.succeeded" if paid else "charge.failed", body)
    return body


def _outcome(declined: CardDeclined | None) -> Json:
    outcome: Json = {
        "advice_code": None,
        "network_advice_code": None,
        "network_decline_code": None,
        "network_status": "approved_by_network",
        "reason": None,
        "risk_level": "normal",
        "risk_score": 10,
        "seller_message": "Payment complete.",
        "type": "authorized",
    }
    if declined is not None:
        outcome |= {
            "network_status": "declined_by_network",
            "reason": declined.details["decline_code"],
            "seller_message": "The bank did not return any further details with this decline.",
            "type": "issuer_declined",
        }
    return outcome


def _method_details(method: Json) -> Json:
    card = method["card"]
    kept = ("brand", "checks", "country", "exp_month", "exp_year", "fingerprint", "funding",
            "last4", "regulated_status", "wallet")  # fmt: skip
    details: Json = {
        **{name: card[name] for name in kept},
        "amount_authorized": None,
        "authorization_code": None,
        "extended_authorization": {"status": "disabled"},
        "incremental_authorization": {"status": "unavailable"},
        "installments": None,
        "mandate": None,
        "multicapture": {"status": "unavailable"},
        "network": card["brand"],
        "network_token": {"used": False},
        "network_transaction_id": None,
        "overcapture": {"maximum_amount_capturable": 0, "status": "unavailable"},
        "three_d_secure": None,
        "transaction_link_id": None,
    }
    return {"card": details, "type": "card"}


def unrefunded(charge: Json) -> int:
    """Returns how much of a charge can still be refunded, in minor units."""
    return int(charge["amount_captured"] - charge["amount_refunded"])


_PATH = "/v1/charges"
ENDPOINTS = (
    searching("charge", _PATH),
    retrieve("charge", _PATH),
    listing("charge", _PATH, {"customer": Text(), "payment_intent": Text()}),
)

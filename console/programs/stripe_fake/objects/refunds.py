"""Refunds: a part of a charge goes back, never more than is left of it.

Most succeed at once. Of the cards for it, one makes a refund `pending` until it succeeds, and one
makes it fail after it succeeded; then the charge holds the amount again.
"""

from __future__ import annotations

from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall, listing, retrieve
from console.programs.stripe_fake.errors import ApiError, Json, ParameterError
from console.programs.stripe_fake.forms import EXPAND, Integer, Metadata, Text, choice_of
from console.programs.stripe_fake.objects import balance, charges, payment_methods
from console.programs.stripe_fake.sandbox import Sandbox, merge_metadata

ENDS_AFTER_S = 60


def _create(call: EndpointCall) -> Json:
    sandbox, params = call.sandbox, call.params
    charge = _charge_of(sandbox, params)
    amount = params.get("amount", charges.unrefunded(charge))
    _check(sandbox, charge, amount)
    method = sandbox.load("payment_method", charge["payment_method"])
    how = payment_methods.issuer_of(method).refunds
    now = sandbox.now()
    body: Json = {
        "id": sandbox.make_id("re_"),
        "object": "refund",
        "amount": amount,
        "balance_transaction": None,
        "charge": charge["id"],
        "created": now,
        "currency": charge["currency"],
        "customer": charge["customer"],
        "customer_account": None,
        "destination_details": {"card": {"type": "refund"}, "type": "card"},
        "metadata": {},
        "payment_intent": charge["payment_intent"],
        "payment_method": charge["payment_method"],
        "reason": params.get("reason"),
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": "pending" if how == "pend" else "succeeded",
        "transfer_reversal": None,
        "_due_at": None if how == "succeed" else now + ENDS_AFTER_S,
        "_fails": how == "fail",
    }
    merge_metadata(body, params.get("metadata"))
    movement = balance.record_movement(sandbox, body, "refund", -amount)
    body["balance_transaction"] = movement["id"]
    sandbox.add(body)
    previous = _hold(sandbox, charge, amount)
    sandbox.emit("refund.created", body)
    sandbox.emit("charge.refunded", charge, previous)
    return body


def _charge_of(sandbox: Sandbox, params: Json) -> Json:
    if ("charge" in params) == ("payment_intent" in params):
        raise ParameterError(
            "One of the following params should be provided for this request: payment_intent or"
            " charge.",
            code="parameter_missing",
        )
    if "charge" in params:
        return sandbox.load("charge", params["charge"], "charge")
    intent = sandbox.load("payment_intent", params["payment_intent"], "payment_intent")
    if intent["status"] != "succeeded":
        raise ApiError(
            400,
            f"This PaymentIntent ({intent['id']}) does not have a successful charge to refund.",
            code="payment_intent_unexpected_state",
            param="payment_intent",
        )
    return sandbox.load("charge", intent["latest_charge"])


def _check(sandbox: Sandbox, charge: Json, amount: int) -> None:
    left = charges.unrefunded(charge)
    if not charge["paid"]:
        raise ApiError(
            400,
            f"Charge {charge['id']} has failed, so it cannot be refunded.",
            code="charge_not_refundable",
        )
    disputes = sandbox.store.select("dispute", {"charge": charge["id"]})
    if any(not body["is_charge_refundable"] for body in disputes):
        raise ApiError(
            400,
            f"Charge {charge['id']} has been charged back; cannot issue a refund.",
            code="charge_disputed",
        )
    if left <= 0:
        raise ApiError(
            400,
            f"Charge {charge['id']} has already been refunded.",
            code="charge_already_refunded",
        )
    if amount > left:
        raise ApiError(
            400,
            f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left}).",
            param="amount",
        )


def _hold(sandbox: Sandbox, charge: Json, amount: int) -> Json:
    """Changes how much of a charge is refunded; returns what the members were."""
    previous = {name: charge[name] for name in ("amount_refunded", "refunded")}
    charge["amount_refunded"] += amount
    charge["refunded"] = charge["amount_refunded"] == charge["amount_captured"]
    sandbox.save(charge)
    return previous


def end_refund(sandbox: Sandbox, body: Json) -> None:
    """Ends a refund whose time has come: it succeeds, or fails after it had succeeded."""
    previous = {"status": body["status"]}
    body["_due_at"] = None
    if not body["_fails"]:
        body["status"] = "succeeded"
        sandbox.save(body)
        sandbox.emit("refund.updated", body, previous)
        sandbox.emit("charge.refund.updated", body, previous)
        return
    charge = sandbox.load("charge", body["charge"])
    movement = balance.record_movement(sandbox, body, "refund_failure", body["amount"])
    body.update(
        status="failed",
        failure_reason="unknown",
        failure_balance_transaction=movement["id"],
    )
    sandbox.save(body)
    _hold(sandbox, charge, -body["amount"])
    sandbox.emit("refund.updated", body, previous)
    sandbox.emit("charge.refund.updated", body, previous)
    sandbox.emit("refund.failed", body)


def _update(call: EndpointCall) -> Json:
    body = call.sandbox.load("refund", call.ids[0])
    before = body["metadata"]
    merge_metadata(body, call.params.get("metadata"))
    if body["metadata"] != before:
        call.sandbox.save(body)
        call.sandbox.emit("refund.updated", body, {"metadata": before})
    return body


_PATH = "/v1/refunds"
_REASONS = choice_of(("duplicate", "fraudulent", "requested_by_customer"))
ENDPOINTS = (
    Endpoint(
        "POST",
        _PATH,
        {
            **EXPAND,
            "amount": Integer(minimum=1),
            "charge": Text(),
            "metadata": Metadata(),
            "payment_intent": Text(),
            "reason": _REASONS,
        },
        _create,
    ),
    retrieve("refund", _PATH),
    Endpoint("POST", f"{_PATH}/{{}}", {**EXPAND, "metadata": Metadata()}, _update),
    listing("refund", _PATH, {"charge": Text(), "payment_intent": Text()}),
)

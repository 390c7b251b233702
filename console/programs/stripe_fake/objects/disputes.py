"""Disputes: a cardholder takes a charge back through the bank.

needs_response → under_review → won or lost; an inquiry is warning_needs_response → warning_closed
and takes no money. Evidence decides as in Stripe's test mode, by its `uncategorized_text`:
`winning_evidence` or `losing_evidence`. Without an answer in time it is lost.
"""

from __future__ import annotations

from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall, listing, retrieve
from console.programs.stripe_fake.errors import ApiError, Json
from console.programs.stripe_fake.forms import EXPAND, Fields, Flag, Metadata, Text
from console.programs.stripe_fake.objects import balance, charges
from console.programs.stripe_fake.sandbox import Sandbox, merge_metadata, visible

ANSWER_WITHIN_S = 9 * 86_400
REASONS = (
    "credit_not_processed", "duplicate", "fraudulent", "general", "product_not_received",
    "product_unacceptable", "subscription_canceled", "unrecognized",
)  # fmt: skip
_EVIDENCE = (
    "access_activity_log", "billing_address", "cancellation_policy",
    "cancellation_policy_disclosure", "cancellation_rebuttal", "customer_communication",
    "customer_email_address", "customer_name", "customer_purchase_ip", "customer_signature",
    "duplicate_charge_documentation", "duplicate_charge_explanation", "duplicate_charge_id",
    "product_description", "receipt", "refund_policy", "refund_policy_disclosure",
    "refund_refusal_explanation", "service_date", "service_documentation", "shipping_address",
    "shipping_carrier", "shipping_date", "shipping_documentation", "shipping_tracking_number",
    "uncategorized_file", "uncategorized_text",
)  # fmt: skip
_OPEN = frozenset({
    "needs_response", "under_review", "warning_needs_response", "warning_under_review",
})  # fmt: skip


def open_dispute(sandbox: Sandbox, charge: Json, reason: str, *, inquiry: bool = False) -> Json:
    """Opens a dispute of what a charge still holds; the money goes, but for an inquiry.

    Raises `ApiError` where the charge failed, is disputed already or has nothing left.
    """
    amount = charges.unrefunded(charge)
    if not charge["paid"] or charge["disputed"] or amount <= 0:
        raise ApiError(400, f"Charge {charge['id']} cannot be disputed.", code="charge_disputed")
    now = sandbox.now()
    body: Json = {
        "id": sandbox.make_id("dp_"),
        "object": "dispute",
        "amount": amount,
        "balance_transactions": [],
        "charge": charge["id"],
        "created": now,
        "currency": charge["currency"],
        "enhanced_eligibility_types": [],
        "evidence": {**dict.fromkeys(_EVIDENCE), "enhanced_evidence": {}},
        "evidence_details": {
            "due_by": now + ANSWER_WITHIN_S,
            "enhanced_eligibility": {},
            "has_evidence": False,
            "past_due": False,
            "submission_count": 0,
            "submission_method": "not_submitted",
        },
        "intended_submission_method": None,
        "is_charge_refundable": inquiry,
        "livemode": False,
        "metadata": {},
        "network_reason_code": "10.4",
        "payment_intent": charge["payment_intent"],
        "payment_method_details": {
            "card": {
                "brand": charge["payment_method_details"]["card"]["brand"],
                "network": charge["payment_method_details"]["card"]["network"],
                "case_type": "inquiry" if inquiry else "chargeback",
                "network_reason_code": "10.4",
            },
            "type": "card",
        },
        "reason": reason,
        "status": "warning_needs_response" if inquiry else "needs_response",
        "_due_at": now + ANSWER_WITHIN_S,
    }
    charge["disputed"] = True
    sandbox.save(charge)
    sandbox.add(body)
    sandbox.emit("charge.dispute.created", body)
    if not inquiry:
        fee = balance.DISPUTE_FEE_MINOR
        movement = balance.record_movement(
            sandbox, body, "adjustment", -amount, fee=fee, category="dispute"
        )
        body["balance_transactions"].append(movement)
        sandbox.save(body)
        sandbox.emit("charge.dispute.funds_withdrawn", body)
    return body


def close_dispute(sandbox: Sandbox, body: Json, *, won: bool) -> Json:
    """Ends a dispute; one that is won brings the money back. Raises `ApiError` at a closed one."""
    if body["status"] not in _OPEN:
        raise ApiError(400, f"This dispute is already closed: {body['id']}", code="dispute_closed")
    inquiry = body["status"].startswith("warning")
    previous = {"status": body["status"]}
    body["status"] = "warning_closed" if inquiry else "won" if won else "lost"
    body["is_charge_refundable"] = inquiry or won
    body["_due_at"] = None
    if won and not inquiry:
        movement = balance.record_movement(
            sandbox, body, "adjustment", body["amount"], category="dispute_reversal"
        )
        body["balance_transactions"].append(movement)
    sandbox.save(body)
    sandbox.emit("charge.dispute.closed", body, previous)
    if won and not inquiry:
        sandbox.emit("charge.dispute.funds_reinstated", body)
    return body


def close_unanswered(sandbox: Sandbox, body: Json) -> None:
    """Ends a dispute whose time for an answer passed: it is lost."""
    body["evidence_details"]["past_due"] = True
    close_dispute(sandbox, body, won=False)


def _update(call: EndpointCall) -> Json:
    sandbox = call.sandbox
    body = sandbox.load("dispute", call.ids[0])
    if body["status"] not in {"needs_response", "warning_needs_response"}:
        raise ApiError(400, "This dispute can no longer be changed.", code="dispute_closed")
    before = visible(body)
    merge_metadata(body, call.params.get("metadata"))
    body["evidence"] = {**body["evidence"], **call.params.get("evidence", {})}
    text = body["evidence"]["uncategorized_text"]
    details = body["evidence_details"]
    details["has_evidence"] = any(body["evidence"][name] for name in _EVIDENCE)
    if call.params.get("submit", True) and details["has_evidence"]:
        details["submission_count"] += 1
        details["submission_method"] = "manual"
        inquiry = body["status"].startswith("warning")
        body["status"] = "warning_under_review" if inquiry else "under_review"
        body["_due_at"] = None
    sandbox.save(body)
    sandbox.emit("charge.dispute.updated", body, {"evidence": before["evidence"]})
    if body["status"] == "under_review" and text in {"winning_evidence", "losing_evidence"}:
        close_dispute(sandbox, body, won=text == "winning_evidence")
    return body


def _close(call: EndpointCall) -> Json:
    return close_dispute(call.sandbox, call.sandbox.load("dispute", call.ids[0]), won=False)


_PATH = "/v1/disputes"
ENDPOINTS = (
    retrieve("dispute", _PATH),
    listing("dispute", _PATH, {"charge": Text(), "payment_intent": Text()}),
    Endpoint(
        "POST",
        f"{_PATH}/{{}}",
        {
            **EXPAND,
            "evidence": Fields({name: Text(unset=True) for name in _EVIDENCE}),
            "metadata": Metadata(),
            "submit": Flag(),
        },
        _update,
    ),
    Endpoint("POST", f"{_PATH}/{{}}/close", EXPAND, _close),
)

"""Checkout sessions in setup mode: a hosted page on which a customer saves a card."""

from __future__ import annotations

from collections.abc import Mapping

from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall, listing, retrieve
from console.programs.stripe_fake.errors import ApiError, Json, ParameterError
from console.programs.stripe_fake.forms import (
    CARD_ONLY,
    EXPAND,
    Address,
    Fields,
    Integer,
    Metadata,
    Parameter,
    Text,
    choice_of,
)
from console.programs.stripe_fake.objects import customers, setup_intents
from console.programs.stripe_fake.sandbox import Sandbox, merge_metadata

OPEN_S = 86_400
_OPEN_S_MIN = 1800
_NOTHING = dict.fromkeys((
    "adaptive_pricing", "after_expiration", "allow_promotion_codes", "amount_subtotal",
    "amount_total", "billing_address_collection", "client_secret", "collected_information",
    "consent", "consent_collection", "currency_conversion", "customer_account",
    "customer_creation", "customer_details", "customer_email", "discounts",
    "integration_identifier", "invoice", "invoice_creation", "managed_payments", "origin_context",
    "payment_intent", "payment_link", "payment_method_configuration_details", "permissions",
    "recovered_from", "saved_payment_method_options", "shipping_address_collection",
    "shipping_cost", "submit_type", "subscription", "total_details", "wallet_options",
))  # fmt: skip


def _create(call: EndpointCall) -> Json:
    sandbox, params, now = call.sandbox, call.params, call.sandbox.now()
    if "currency" not in params and "allowed_payment_method_types" not in params:
        raise ParameterError(
            "You must specify `currency` or `allowed_payment_method_types` in `setup` mode.",
            code="parameter_missing",
            param="currency",
        )
    expires_at = params.get("expires_at", now + OPEN_S)
    if not now + _OPEN_S_MIN <= expires_at <= now + OPEN_S:
        raise ParameterError(
            "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout"
            " Session creation.",
            param="expires_at",
        )
    if "customer" in params:
        customers.load_customer(sandbox, params["customer"])
    intent = setup_intents.create_setup_intent(
        sandbox, {"customer": params.get("customer"), **params.get("setup_intent_data", {})}
    )
    session_id = sandbox.make_id("cs_test_", 58)
    body: Json = {
        "id": session_id,
        "object": "checkout.session",
        **_NOTHING,
        "allowed_payment_method_types": params.get("allowed_payment_method_types"),
        "automatic_tax": {"enabled": False, "liability": None, "provider": None, "status": None},
        "cancel_url": params.get("cancel_url"),
        "client_reference_id": params.get("client_reference_id"),
        "created": now,
        "currency": params.get("currency"),
        "custom_fields": [],
        "custom_text": {
            "after_submit": None,
            "shipping_address": None,
            "submit": None,
            "terms_of_service_acceptance": None,
        },
        "customer": params.get("customer"),
        "expires_at": expires_at,
        "livemode": False,
        "locale": params.get("locale"),
        "metadata": {},
        "mode": "setup",
        "payment_method_collection": "always",
        "payment_method_options": {"card": {"request_three_d_secure": "automatic"}},
        "payment_method_types": ["card"],
        "payment_status": "no_payment_required",
        "phone_number_collection": {"enabled": False},
        "setup_intent": intent["id"],
        "shipping_options": [],
        "status": "open",
        "success_url": params["success_url"],
        "ui_mode": "hosted_page",
        "url": f"{sandbox.base}/checkout/{session_id}",
        "_due_at": expires_at,
    }
    merge_metadata(body, params.get("metadata"))
    return sandbox.add(body)


def complete_session(sandbox: Sandbox, body: Json) -> str:
    """Completes a session whose setup intent succeeded; returns where the browser goes."""
    if body["status"] == "open":
        body.update(status="complete", url=None, _due_at=None)
        sandbox.save(body)
        sandbox.emit("checkout.session.completed", body)
    return str(body["success_url"]).replace("{CHECKOUT_SESSION_ID}", body["id"])


def expire_session(sandbox: Sandbox, body: Json) -> Json:
    """Expires an open session; raises `ApiError` at another one."""
    if body["status"] != "open":
        raise ApiError(
            400,
            "Only Checkout Sessions with a status in ['open'] can be expired. This Checkout"
            f" Session has a status of `{body['status']}`.",
        )
    body.update(status="expired", url=None, _due_at=None)
    sandbox.save(body)
    sandbox.emit("checkout.session.expired", body)
    return body


_PATH = "/v1/checkout/sessions"
_FIELDS: Mapping[str, Parameter] = {
    **EXPAND,
    "cancel_url": Address(),
    "client_reference_id": Text(chars_max=200),
    "currency": Text(),
    "customer": Text(),
    "expires_at": Integer(),
    "locale": Text(),
    "metadata": Metadata(),
    # The fake has no page for the other modes.
    "mode": choice_of(("setup",), required=True),
    "allowed_payment_method_types": CARD_ONLY,
    "setup_intent_data": Fields({"description": Text(), "metadata": Metadata()}),
    "success_url": Address(required=True),
}
ENDPOINTS = (
    Endpoint("POST", _PATH, _FIELDS, _create),
    retrieve("checkout.session", _PATH),
    listing(
        "checkout.session",
        _PATH,
        {
            "customer": Text(),
            "payment_intent": Text(),
            "status": choice_of(("complete", "expired", "open")),
        },
    ),
    Endpoint(
        "POST",
        f"{_PATH}/{{}}/expire",
        EXPAND,
        lambda call: expire_session(
            call.sandbox, call.sandbox.load("checkout.session", call.ids[0])
        ),
    ),
)

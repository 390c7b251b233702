"""Setup intents: a card is saved for charges without its owner.

requires_payment_method → requires_confirmation → requires_action → succeeded, or canceled before.
A card that is declined, or whose authentication failed, leads back to requires_payment_method.
"""

from __future__ import annotations

from collections.abc import Mapping

from console.programs.stripe_fake.cards import decline_message, error_code
from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall, listing, retrieve
from console.programs.stripe_fake.errors import ApiError, CardDeclined, Json
from console.programs.stripe_fake.forms import (
    CARD_ONLY,
    EXPAND,
    Address,
    Fields,
    Flag,
    Metadata,
    Parameter,
    Text,
    choice_of,
)
from console.programs.stripe_fake.objects import customers, payment_methods
from console.programs.stripe_fake.sandbox import Sandbox, merge_metadata, visible

_CONFIRMED = frozenset({"requires_payment_method", "requires_confirmation", "requires_action"})
_AUTHENTICATION_FAILED = "setup_intent_authentication_failure"


def create_setup_intent(sandbox: Sandbox, params: Json) -> Json:
    """Stores a setup intent."""
    intent_id = sandbox.make_id("seti_")
    body: Json = {
        "id": intent_id,
        "object": "setup_intent",
        "allowed_payment_method_types": params.get("allowed_payment_method_types"),
        "application": None,
        "automatic_payment_methods": params.get("automatic_payment_methods"),
        "cancellation_reason": None,
        "client_secret": f"{intent_id}_secret_{sandbox.make_id('', 25)}",
        "created": sandbox.now(),
        "customer": params.get("customer"),
        "customer_account": None,
        "description": params.get("description"),
        "excluded_payment_method_types": None,
        "flow_directions": None,
        "last_setup_error": None,
        "latest_attempt": None,
        "livemode": False,
        "mandate": None,
        "metadata": {},
        "next_action": None,
        "on_behalf_of": None,
        "payment_method": None,
        "payment_method_configuration_details": None,
        "payment_method_options": {
            "card": {
                "mandate_options": None,
                "network": None,
                "request_three_d_secure": "automatic",
            }
        },
        "payment_method_types": ["card"],
        "single_use_mandate": None,
        "status": "requires_payment_method",
        "usage": params.get("usage", "off_session"),
    }
    merge_metadata(body, params.get("metadata"))
    if body["customer"] is not None:
        customers.load_customer(sandbox, body["customer"])
    if "payment_method" in params:
        _choose_method(sandbox, body, params["payment_method"])
    sandbox.add(body)
    sandbox.emit("setup_intent.created", body)
    return body


def _choose_method(sandbox: Sandbox, body: Json, method_id: str) -> None:
    method = payment_methods.usable_method(sandbox, method_id)
    if method["customer"] not in {None, body["customer"]}:
        raise ApiError(
            400,
            "The payment method you provided is attached to a different customer.",
            code="payment_method_customer_mismatch",
            param="payment_method",
        )
    body["payment_method"], body["status"] = method["id"], "requires_confirmation"


def confirm_setup(sandbox: Sandbox, body: Json, return_url: str | None) -> Json:
    """Saves the intent's card, or asks its owner first. Raises `CardDeclined`."""
    if body["status"] not in _CONFIRMED:
        raise _unexpected(body, "confirm")
    if body["payment_method"] is None:
        raise ApiError(
            400,
            "You cannot confirm this SetupIntent because it's missing a payment method.",
            code="setup_intent_unexpected_state",
            details={"setup_intent": visible(body)},
        )
    method = sandbox.load("payment_method", body["payment_method"])
    issuer = payment_methods.issuer_of(method)
    if issuer.declines_setup is not None:
        raise _fail(sandbox, body, method, issuer.declines_setup)
    if issuer.authentication != "never":
        body["status"] = "requires_action"
        body["next_action"] = next_action(sandbox, body, return_url)
        sandbox.save(body)
        sandbox.emit("setup_intent.requires_action", body)
        return body
    return _succeed(sandbox, body, method)


def next_action(sandbox: Sandbox, body: Json, return_url: str | None) -> Json:
    """Returns what the cardholder must do: on the fake's page, or (without one) in a library."""
    if return_url is None:
        return {"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}
    secret = body["client_secret"].rpartition("_secret_")[2]
    return {
        "redirect_to_url": {
            "return_url": return_url,
            "url": f"{sandbox.base}/authenticate/{body['id']}/{secret}",
        },
        "type": "redirect_to_url",
    }


def finish_authentication(sandbox: Sandbox, body: Json, *, succeeded: bool) -> Json:
    """Ends what the cardholder was asked for. Raises `CardDeclined` where it failed."""
    method = sandbox.load("payment_method", body["payment_method"])
    if succeeded:
        return _succeed(sandbox, body, method)
    raise _fail(sandbox, body, method, _AUTHENTICATION_FAILED)


def _succeed(sandbox: Sandbox, body: Json, method: Json) -> Json:
    method["_set_up"] = True
    sandbox.save(method)
    if body["customer"] is not None:
        payment_methods.attach_method(sandbox, method, body["customer"])
    body.update(status="succeeded", next_action=None, last_setup_error=None)
    sandbox.save(body)
    sandbox.emit("setup_intent.succeeded", body)
    return body


def _fail(sandbox: Sandbox, body: Json, method: Json, reason: str) -> CardDeclined:
    if reason == _AUTHENTICATION_FAILED:
        message = (
            "We are unable to authenticate your payment method. Please choose a different payment"
            " method and try again."
        )
        error = CardDeclined(message, code=reason, decline_code="authentication_required")
    else:
        error = CardDeclined(decline_message(reason), code=error_code(reason), decline_code=reason)
    body.update(status="requires_payment_method", payment_method=None, next_action=None)
    body["last_setup_error"] = error.as_last_error(visible(method))
    sandbox.save(body)
    sandbox.emit("setup_intent.setup_failed", body)
    error.details |= {"payment_method": visible(method), "setup_intent": visible(body)}
    return error


def _unexpected(body: Json, verb: str) -> ApiError:
    return ApiError(
        400,
        f"You cannot {verb} this SetupIntent because it has a status of {body['status']}.",
        code="setup_intent_unexpected_state",
        details={"setup_intent": visible(body)},
    )


def _create(call: EndpointCall) -> Json:
    if not call.params.get("confirm") and "return_url" in call.params:
        raise ApiError(
            400,
            "The parameter `return_url` cannot be passed when creating a SetupIntent unless"
            " `confirm` is set to true.",
            param="return_url",
        )
    body = create_setup_intent(call.sandbox, call.params)
    if call.params.get("confirm"):
        return confirm_setup(call.sandbox, body, call.params.get("return_url"))
    return body


def _confirm(call: EndpointCall) -> Json:
    body = call.sandbox.load("setup_intent", call.ids[0], "intent")
    if body["status"] not in _CONFIRMED:
        raise _unexpected(body, "confirm")
    if "payment_method" in call.params:
        _choose_method(call.sandbox, body, call.params["payment_method"])
    return confirm_setup(call.sandbox, body, call.params.get("return_url"))


def _cancel(call: EndpointCall) -> Json:
    body = call.sandbox.load("setup_intent", call.ids[0], "intent")
    if body["status"] not in _CONFIRMED:
        raise _unexpected(body, "cancel")
    body.update(status="canceled", next_action=None)
    body["cancellation_reason"] = call.params.get("cancellation_reason")
    call.sandbox.save(body)
    call.sandbox.emit("setup_intent.canceled", body)
    return body


_PATH = "/v1/setup_intents"
_METHODS = Fields({"enabled": Flag(required=True), "allow_redirects": Text()})
_FIELDS: Mapping[str, Parameter] = {
    **EXPAND,
    "automatic_payment_methods": _METHODS,
    "confirm": Flag(),
    "customer": Text(),
    "description": Text(),
    "metadata": Metadata(),
    "payment_method": Text(),
    "allowed_payment_method_types": CARD_ONLY,
    "return_url": Address(),
    "usage": choice_of(("off_session", "on_session")),
}
_REASONS = choice_of(("abandoned", "duplicate", "requested_by_customer"))
ENDPOINTS = (
    Endpoint("POST", _PATH, _FIELDS, _create),
    retrieve("setup_intent", _PATH, {"client_secret": Text()}),
    listing("setup_intent", _PATH, {"customer": Text(), "payment_method": Text()}),
    Endpoint(
        "POST",
        f"{_PATH}/{{}}/confirm",
        {**EXPAND, "payment_method": Text(), "return_url": Address()},
        _confirm,
    ),
    Endpoint("POST", f"{_PATH}/{{}}/cancel", {**EXPAND, "cancellation_reason": _REASONS}, _cancel),
)

"""Payment intents: one amount that is to be collected, by as many charges as it takes.

requires_payment_method → requires_confirmation → requires_action → processing → succeeded, or
canceled before. A declined card, or a failed authentication, leads back to
requires_payment_method; `succeeded` and `canceled` are final, and at most one charge of an intent
succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping

from console.programs.stripe_fake.cards import decline_message, error_code
from console.programs.stripe_fake.endpoints import (
    Endpoint,
    EndpointCall,
    listing,
    retrieve,
    searching,
)
from console.programs.stripe_fake.errors import ApiError, CardDeclined, Json, ParameterError
from console.programs.stripe_fake.forms import (
    CARD_ONLY,
    EXPAND,
    Address,
    Fields,
    Flag,
    Integer,
    Metadata,
    Parameter,
    Text,
    choice_of,
)
from console.programs.stripe_fake.objects import (
    charges,
    customers,
    disputes,
    payment_methods,
    setup_intents,
)
from console.programs.stripe_fake.objects.amounts import check_amount
from console.programs.stripe_fake.sandbox import (
    Sandbox,
    changed_members,
    merge_metadata,
    visible,
)

_CONFIRMED = frozenset({"requires_payment_method", "requires_confirmation", "requires_action"})
_AUTHENTICATION_FAILED = "payment_intent_authentication_failure"
_COPIED = ("description", "receipt_email", "setup_future_usage", "statement_descriptor_suffix")


def _create(call: EndpointCall) -> Json:
    sandbox, params = call.sandbox, call.params
    check_amount(params["amount"], params["currency"])
    if not params.get("confirm"):
        for name in ("off_session", "return_url", "error_on_requires_action"):
            if name in params:
                raise ParameterError(
                    f"The parameter `{name}` cannot be passed when creating a PaymentIntent unless"
                    " `confirm` is set to true.",
                    param=name,
                )
    body = _draft(sandbox, params)
    if body["customer"] is not None:
        customers.load_customer(sandbox, body["customer"])
    if "payment_method" in params:
        _choose_method(sandbox, body, params["payment_method"])
    _check_return_url(body, params)
    sandbox.add(body)
    sandbox.emit("payment_intent.created", body)
    return _confirm_intent(sandbox, body, params) if params.get("confirm") else body


def _draft(sandbox: Sandbox, params: Json) -> Json:
    intent_id = sandbox.make_id("pi_")
    automatic = params.get("automatic_payment_methods", {"enabled": True})
    body: Json = {
        "id": intent_id,
        "object": "payment_intent",
        "allowed_payment_method_types": params.get("allowed_payment_method_types"),
        "amount": params["amount"],
        "amount_capturable": 0,
        "amount_details": {"tip": {}},
        "amount_received": 0,
        "application": None,
        "application_fee_amount": None,
        "automatic_payment_methods": {"allow_redirects": "always", **automatic},
        "canceled_at": None,
        "cancellation_reason": None,
        "capture_method": "automatic_async",
        "client_secret": f"{intent_id}_secret_{sandbox.make_id('', 25)}",
        "confirmation_method": "automatic",
        "created": sandbox.now(),
        "currency": params["currency"].lower(),
        "customer": params.get("customer"),
        "customer_account": None,
        "excluded_payment_method_types": None,
        "last_payment_error": None,
        "latest_charge": None,
        "livemode": False,
        "managed_payments": None,
        "metadata": {},
        "next_action": None,
        "on_behalf_of": None,
        "payment_method": None,
        "payment_method_configuration_details": None,
        "payment_method_options": {
            "card": {"installments": None, "mandate_options": None, "network": None,
                     "request_three_d_secure": "automatic"},
        },
        "payment_method_types": ["card"],
        "processing": None,
        "review": None,
        "shipping": None,
        "source": None,
        "statement_descriptor": None,
        "status": "requires_payment_method",
        "transfer_data": None,
        "transfer_group": None,
        **{name: params.get(name) for name in _COPIED},
    }  # fmt: skip
    merge_metadata(body, params.get("metadata"))
    return body


def _choose_method(sandbox: Sandbox, body: Json, method_id: str) -> None:
    method = payment_methods.usable_method(sandbox, method_id)
    if method["customer"] is not None and method["customer"] != body["customer"]:
        raise ApiError(
            400,
            f"The provided PaymentMethod ({method['id']}) belongs to another Customer. Please"
            " include the Customer in the `customer` parameter.",
            code="payment_method_customer_mismatch",
            param="payment_method",
        )
    body["payment_method"], body["status"] = method["id"], "requires_confirmation"


def _check_return_url(body: Json, params: Json) -> None:
    redirects = (
        body["automatic_payment_methods"]["allow_redirects"] == "always"
        and body["allowed_payment_method_types"] is None
    )
    on_session = params.get("confirm") and not params.get("off_session")
    if redirects and on_session and "return_url" not in params:
        raise ParameterError(
            "This PaymentIntent is configured to accept payment methods enabled in your Dashboard."
            " Because some of these payment methods might redirect your customer off of your page,"
            " you must provide a `return_url`. If you don't want to accept redirect-based payment"
            " methods, set `automatic_payment_methods[enabled]` to `true` and"
            " `automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents"
            " and Payment Intents.",
            param="return_url",
        )


def _confirm_intent(sandbox: Sandbox, body: Json, params: Json) -> Json:
    """Charges the card, or asks its owner first. Raises `CardDeclined`."""
    if body["payment_method"] is None:
        raise ApiError(
            400,
            "You cannot confirm this PaymentIntent because it's missing a payment method. You can"
            " either update the PaymentIntent with a payment method and then confirm it again, or"
            " confirm it again directly with a payment method.",
            code="payment_intent_unexpected_state",
            details={"payment_intent": visible(body)},
        )
    method = sandbox.load("payment_method", body["payment_method"])
    off_session = bool(params.get("off_session"))
    authentication = payment_methods.issuer_of(method).authentication
    asks = authentication == "always" or (
        authentication == "unless_set_up" and not (off_session and method["_set_up"])
    )
    if asks and (off_session or params.get("error_on_requires_action")):
        raise _decline(sandbox, body, method, "authentication_required")
    if asks:
        body["status"] = "requires_action"
        body["next_action"] = setup_intents.next_action(sandbox, body, params.get("return_url"))
        sandbox.save(body)
        sandbox.emit("payment_intent.requires_action", body)
        return body
    return _charge(sandbox, body, method)


def _charge(sandbox: Sandbox, body: Json, method: Json) -> Json:
    waits_s = method.get("_processing_s", 0)
    if waits_s:
        body.update(status="processing", next_action=None, _due_at=sandbox.now() + waits_s)
        sandbox.save(body)
        sandbox.emit("payment_intent.processing", body)
        return body
    declines = payment_methods.issuer_of(method).declines
    if declines is not None:
        raise _decline(sandbox, body, method, declines)
    return _succeed(sandbox, body, method)


def _succeed(sandbox: Sandbox, body: Json, method: Json) -> Json:
    issuer = payment_methods.issuer_of(method)
    charge = charges.record_charge(sandbox, body, method, None)
    body.update(
        status="succeeded",
        amount_received=body["amount"],
        latest_charge=charge["id"],
        last_payment_error=None,
        next_action=None,
        _due_at=None,
    )
    sandbox.save(body)
    sandbox.emit("payment_intent.succeeded", body)
    if issuer.disputed is not None:
        inquiry = issuer.disputed == "warning"
        reason = "fraudulent" if inquiry else issuer.disputed
        disputes.open_dispute(sandbox, charge, reason, inquiry=inquiry)
    return body


def _decline(sandbox: Sandbox, body: Json, method: Json, reason: str) -> CardDeclined:
    error = CardDeclined(decline_message(reason), code=error_code(reason), decline_code=reason)
    charge = charges.record_charge(sandbox, body, method, error)
    error.details["charge"] = charge["id"]
    body["latest_charge"] = charge["id"]
    return _refuse_method(sandbox, body, method, error)


def _refuse_method(sandbox: Sandbox, body: Json, method: Json, error: CardDeclined) -> CardDeclined:
    last = error.as_last_error(visible(method))
    if "charge" in error.details:
        last["charge"] = error.details["charge"]
    body.update(
        status="requires_payment_method",
        last_payment_error=last,
        next_action=None,
        payment_method=None,
        _due_at=None,
    )
    sandbox.save(body)
    sandbox.emit("payment_intent.payment_failed", body)
    error.details |= {"payment_intent": visible(body), "payment_method": visible(method)}
    return error


def finish_authentication(sandbox: Sandbox, body: Json, *, succeeded: bool) -> Json:
    """Ends what the cardholder was asked for: the card is charged, or refused.

    Raises `CardDeclined`.
    """
    method = sandbox.load("payment_method", body["payment_method"])
    if succeeded:
        return _charge(sandbox, body, method)
    message = (
        "We are unable to authenticate your payment method. Please choose a different payment"
        " method and try again."
    )
    error = CardDeclined(
        message, code=_AUTHENTICATION_FAILED, decline_code="authentication_required"
    )
    raise _refuse_method(sandbox, body, method, error)


def end_processing(sandbox: Sandbox, body: Json) -> None:
    """Ends a payment whose time of processing has passed: it succeeds, or is declined."""
    method = sandbox.load("payment_method", body["payment_method"])
    declines = payment_methods.issuer_of(method).declines
    if declines is None:
        _succeed(sandbox, body, method)
    else:
        _decline(sandbox, body, method, declines)


def _unexpected(body: Json, verb: str) -> ApiError:
    return ApiError(
        400,
        f"You cannot {verb} this PaymentIntent because it has a status of {body['status']}.",
        code="payment_intent_unexpected_state",
        details={"payment_intent": visible(body)},
    )


def _load(call: EndpointCall, verb: str) -> Json:
    body = call.sandbox.load("payment_intent", call.ids[0], "intent")
    if body["status"] not in _CONFIRMED:
        raise _unexpected(body, verb)
    return body


def _confirm(call: EndpointCall) -> Json:
    body = _load(call, "confirm")
    if "payment_method" in call.params:
        _choose_method(call.sandbox, body, call.params["payment_method"])
    _check_return_url(body, {**call.params, "confirm": True})
    if "receipt_email" in call.params:
        body["receipt_email"] = call.params["receipt_email"]
    return _confirm_intent(call.sandbox, body, call.params)


def _cancel(call: EndpointCall) -> Json:
    body = _load(call, "cancel")
    body.update(
        status="canceled",
        canceled_at=call.sandbox.now(),
        cancellation_reason=call.params.get("cancellation_reason"),
        next_action=None,
    )
    call.sandbox.save(body)
    call.sandbox.emit("payment_intent.canceled", body)
    return body


def _update(call: EndpointCall) -> Json:
    sandbox, params = call.sandbox, call.params
    body = sandbox.load("payment_intent", call.ids[0], "intent")
    final = body["status"] in {"succeeded", "canceled", "processing"}
    if final and not params.keys() <= {"description", "metadata", "expand", "receipt_email"}:
        raise _unexpected(body, "update")
    before = visible(body)
    if "amount" in params or "currency" in params:
        body.update({name: params[name] for name in ("amount", "currency") if name in params})
        check_amount(body["amount"], body["currency"])
        body["currency"] = body["currency"].lower()
    if "customer" in params and params["customer"] != body["customer"]:
        if body["customer"] is not None:
            raise ApiError(
                400,
                "The customer of a PaymentIntent cannot be changed.",
                code="payment_intent_unexpected_state",
                param="customer",
            )
        body["customer"] = customers.load_customer(sandbox, params["customer"])["id"]
    if "payment_method" in params:
        _choose_method(sandbox, body, params["payment_method"])
    body.update({name: params[name] for name in _COPIED if name in params})
    merge_metadata(body, params.get("metadata"))
    if changed_members(before, body):
        sandbox.save(body)
    return body


_PATH = "/v1/payment_intents"
_METHODS = Fields(
    {"enabled": Flag(required=True), "allow_redirects": choice_of(("always", "never"))}
)
_OWN: Mapping[str, Parameter] = {
    **EXPAND,
    "customer": Text(),
    "description": Text(unset=True),
    "metadata": Metadata(),
    "payment_method": Text(),
    "allowed_payment_method_types": CARD_ONLY,
    "receipt_email": Text(unset=True),
    "setup_future_usage": choice_of(("off_session", "on_session")),
    "statement_descriptor_suffix": Text(chars_max=22),
}
_CONFIRMING: Mapping[str, Parameter] = {
    "error_on_requires_action": Flag(),
    "off_session": Flag(),
    "return_url": Address(),
}
_REASONS = choice_of(("abandoned", "duplicate", "fraudulent", "requested_by_customer"))
ENDPOINTS = (
    Endpoint(
        "POST",
        _PATH,
        {
            **_OWN,
            **_CONFIRMING,
            "amount": Integer(required=True),
            "automatic_payment_methods": _METHODS,
            "confirm": Flag(),
            "currency": Text(required=True),
        },
        _create,
    ),
    searching("payment_intent", _PATH),
    retrieve("payment_intent", _PATH, {"client_secret": Text()}),
    Endpoint("POST", f"{_PATH}/{{}}", {**_OWN, "amount": Integer(), "currency": Text()}, _update),
    Endpoint(
        "POST",
        f"{_PATH}/{{}}/confirm",
        {**EXPAND, **_CONFIRMING, "payment_method": Text(), "receipt_email": Text(unset=True)},
        _confirm,
    ),
    Endpoint("POST", f"{_PATH}/{{}}/cancel", {**EXPAND, "cancellation_reason": _REASONS}, _cancel),
    listing("payment_intent", _PATH, {"customer": Text()}),
)

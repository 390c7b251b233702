"""Payment methods: saved cards, whose they are, and how their issuers answer."""

from __future__ import annotations

import time
from dataclasses import replace

from console.programs.stripe_fake.cards import (
    CARDS,
    KNOWN_METHODS,
    Card,
    decline_message,
    error_code,
    fingerprint,
)
from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall, listing, retrieve
from console.programs.stripe_fake.errors import ApiError, CardDeclined, Json
from console.programs.stripe_fake.forms import (
    ADDRESS,
    EXPAND,
    Fields,
    Integer,
    Metadata,
    Text,
)
from console.programs.stripe_fake.sandbox import Sandbox, merge_metadata, visible

_USED = (
    "The provided PaymentMethod was previously used with a PaymentIntent without Customer"
    " attachment, shared with a connected account without Customer attachment, or was detached from"
    " a Customer. It may not be used again. To use a PaymentMethod multiple times, you must attach"
    " it to a Customer first."
)
NO_BILLING: Json = {
    "address": dict.fromkeys(ADDRESS),
    "email": None,
    "name": None,
    "phone": None,
    "tax_id": None,
}


def create_card(sandbox: Sandbox, number: str, *, expires: tuple[int, int] | None = None) -> Json:
    """Stores the card with a number, which is one of `CARDS`, as a payment method of nobody.

    `expires`: month and year; by default at the end of the year after the next one.
    """
    card = CARDS[number]
    month, year = expires or (12, time.gmtime(sandbox.now()).tm_year + 2)
    return sandbox.add(
        {
            "id": sandbox.make_id("pm_"),
            "object": "payment_method",
            "allow_redisplay": "unspecified",
            "billing_details": NO_BILLING,
            "card": {
                "brand": card.brand,
                "checks": {
                    "address_line1_check": None,
                    "address_postal_code_check": None,
                    "cvc_check": "pass",
                },
                "country": card.country,
                "display_brand": card.brand if card.brand != "amex" else "american_express",
                "exp_month": month,
                "exp_year": year,
                "fingerprint": fingerprint(number),
                "funding": card.funding,
                "generated_from": None,
                "last4": number[-4:],
                "networks": {"available": [card.brand], "preferred": None},
                "regulated_status": "unregulated",
                "three_d_secure_usage": {"supported": True},
                "wallet": None,
            },
            "created": sandbox.now(),
            "customer": None,
            "customer_account": None,
            "livemode": False,
            "metadata": {},
            "type": "card",
            "_number": number,
            "_set_up": False,
            "_detached": False,
        }
    )


def usable_method(sandbox: Sandbox, method_id: str, param: str = "payment_method") -> Json:
    """Returns a payment method; one of Stripe's known ids (`pm_card_visa`) makes a new one.

    Raises `ApiError` where there is none, or it was detached from a customer.
    """
    if method_id in KNOWN_METHODS:
        return create_card(sandbox, KNOWN_METHODS[method_id])
    method = sandbox.load("payment_method", method_id, param)
    if method["_detached"]:
        raise ApiError(400, _USED, code="payment_method_unexpected_state")
    return method


def method_of_customer(
    sandbox: Sandbox, method_id: str, customer_id: str, param: str = "payment_method"
) -> Json:
    """Returns a payment method that is attached to a customer; raises `ApiError`."""
    method = sandbox.store.load("payment_method", method_id)
    if method is None or method["customer"] != customer_id:
        raise ApiError(
            404 if param == "id" else 400,
            f"The customer does not have a payment method with the ID {method_id}. The payment"
            " method must be attached to the customer.",
            code="resource_missing",
            param=param,
        )
    return method


def issuer_of(method: Json) -> Card:
    """Returns how the issuer of a saved card answers, with what the control API changed."""
    card = CARDS[method["_number"]]
    if "_declines" in method:
        card = replace(card, declines=method["_declines"])
    return card


def attach_method(sandbox: Sandbox, method: Json, customer_id: str) -> Json:
    """Makes a payment method a customer's. Raises `ApiError`, also where the card is declined."""
    if method["customer"] is not None:
        if method["customer"] == customer_id:
            return method
        raise ApiError(
            400,
            "The payment method you provided has already been attached to a customer.",
            code="payment_method_unexpected_state",
        )
    declines = issuer_of(method).declines_setup
    if declines is not None:
        raise CardDeclined(
            decline_message(declines), code=error_code(declines), decline_code=declines
        )
    method["customer"] = customer_id
    sandbox.save(method)
    sandbox.emit("payment_method.attached", method)
    return method


def detach_method(sandbox: Sandbox, method: Json) -> Json:
    """Takes a payment method from its customer, for good, also where it was the default."""
    customer_id = method["customer"]
    if customer_id is None:
        raise ApiError(
            400,
            "The payment method you provided is not attached to a customer so detachment is"
            " impossible.",
            code="payment_method_unexpected_state",
        )
    method["customer"], method["_detached"] = None, True
    sandbox.save(method)
    sandbox.emit("payment_method.detached", method, {"customer": customer_id})
    customer = sandbox.load("customer", customer_id)
    settings = customer["invoice_settings"]
    if settings["default_payment_method"] == method["id"]:
        previous = {"invoice_settings": {"default_payment_method": method["id"]}}
        settings["default_payment_method"] = None
        sandbox.save(customer)
        sandbox.emit("customer.updated", customer, previous)
    return method


def _attach(call: EndpointCall) -> Json:
    customer = call.sandbox.load("customer", call.params["customer"], "customer")
    if customer.get("deleted"):
        raise ApiError(400, f"No such customer: '{customer['id']}'", code="resource_missing")
    method = usable_method(call.sandbox, call.ids[0], "id")
    return attach_method(call.sandbox, method, customer["id"])


def _detach(call: EndpointCall) -> Json:
    return detach_method(call.sandbox, call.sandbox.load("payment_method", call.ids[0]))


def _update(call: EndpointCall) -> Json:
    method = call.sandbox.load("payment_method", call.ids[0])
    before = visible(method)
    merge_metadata(method, call.params.get("metadata"))
    details = call.params.get("billing_details", {})
    if "address" in details:
        details = {**details, "address": {**dict.fromkeys(ADDRESS), **details["address"]}}
    method["billing_details"] = {**method["billing_details"], **details}
    method["card"].update(call.params.get("card", {}))
    if visible(method) != before:
        call.sandbox.save(method)
        call.sandbox.emit("payment_method.updated", method, {})
    return method


_PATH = "/v1/payment_methods"
_BILLING = Fields(
    {
        "address": Fields(ADDRESS),
        "email": Text(unset=True),
        "name": Text(unset=True),
        "phone": Text(unset=True),
    }
)
_EXPIRY = Fields({"exp_month": Integer(minimum=1), "exp_year": Integer(minimum=1)})
LIST = listing("payment_method", _PATH, {"customer": Text(required=True), "type": Text()})
ENDPOINTS = (
    retrieve("payment_method", _PATH),
    Endpoint(
        "POST",
        f"{_PATH}/{{}}",
        {**EXPAND, "billing_details": _BILLING, "card": _EXPIRY, "metadata": Metadata()},
        _update,
    ),
    Endpoint("GET", _PATH, {n: f for n, f in LIST.fields.items() if n != "created"}, LIST.handle),
    Endpoint("POST", f"{_PATH}/{{}}/attach", {**EXPAND, "customer": Text(required=True)}, _attach),
    Endpoint("POST", f"{_PATH}/{{}}/detach", EXPAND, _detach),
)

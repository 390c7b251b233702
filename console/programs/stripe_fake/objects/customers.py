"""Customers: who pays, and with which payment method by default."""

from __future__ import annotations

from collections.abc import Mapping

from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall, listing, searching
from console.programs.stripe_fake.errors import ApiError, Json
from console.programs.stripe_fake.forms import (
    ADDRESS,
    EXPAND,
    Fields,
    Items,
    Metadata,
    Parameter,
    Text,
)
from console.programs.stripe_fake.objects import payment_methods
from console.programs.stripe_fake.sandbox import (
    Sandbox,
    changed_members,
    merge_metadata,
    visible,
)

_PLAIN = ("description", "email", "name", "phone", "preferred_locales", "tax_exempt")
_FIELDS: Mapping[str, Parameter] = {
    **EXPAND,
    "address": Fields(ADDRESS, unset=True),
    "description": Text(unset=True),
    "email": Text(unset=True, chars_max=512),
    "invoice_settings": Fields({"default_payment_method": Text(unset=True)}),
    "metadata": Metadata(),
    "name": Text(unset=True, chars_max=256),
    "phone": Text(unset=True, chars_max=20),
    "preferred_locales": Items(),
    "tax_exempt": Text(choices=("exempt", "none", "reverse"), unset=True),
}


def _create(call: EndpointCall) -> Json:
    sandbox, now = call.sandbox, call.sandbox.now()
    body: Json = {
        "id": sandbox.make_id("cus_", 14),
        "object": "customer",
        "address": None,
        "balance": 0,
        "created": now,
        "currency": None,
        "customer_account": None,
        "default_source": None,
        "delinquent": False,
        "description": None,
        "discount": None,
        "email": None,
        "invoice_prefix": sandbox.make_id("", 8).upper(),
        "invoice_settings": {
            "custom_fields": None,
            "default_payment_method": None,
            "footer": None,
            "rendering_options": None,
        },
        "livemode": False,
        "metadata": {},
        "name": None,
        "next_invoice_sequence": 1,
        "phone": None,
        "preferred_locales": [],
        "shipping": None,
        "tax_exempt": "none",
        "test_clock": None,
    }
    sandbox.add(body)
    if "payment_method" in call.params:
        method = payment_methods.usable_method(sandbox, call.params["payment_method"])
        payment_methods.attach_method(sandbox, method, body["id"])
    _apply(sandbox, body, call.params)
    sandbox.save(body)
    sandbox.emit("customer.created", body)
    return body


def _apply(sandbox: Sandbox, body: Json, params: Json) -> None:
    body.update({name: params[name] for name in _PLAIN if name in params})
    body["tax_exempt"] = body["tax_exempt"] or "none"
    if "address" in params:
        given = params["address"]
        body["address"] = None if given is None else {**dict.fromkeys(ADDRESS), **given}
    merge_metadata(body, params.get("metadata"))
    settings = params.get("invoice_settings", {})
    if "default_payment_method" in settings:
        method_id = settings["default_payment_method"]
        if method_id is not None:
            payment_methods.method_of_customer(
                sandbox, method_id, body["id"], "invoice_settings[default_payment_method]"
            )
        body["invoice_settings"]["default_payment_method"] = method_id


def load_customer(sandbox: Sandbox, customer_id: str, param: str = "customer") -> Json:
    """Returns a customer; raises `ApiError` where there is none, or it was deleted."""
    body = sandbox.load("customer", customer_id, param)
    if body.get("deleted"):
        raise ApiError(
            404 if param == "id" else 400,
            f"No such customer: '{customer_id}'",
            code="resource_missing",
            param=param,
        )
    return body


def update_customer(sandbox: Sandbox, customer_id: str, params: Json) -> Json:
    """Changes what `params` names, and records the event."""
    body = load_customer(sandbox, customer_id, "id")
    before = visible(body)
    _apply(sandbox, body, params)
    changes = changed_members(before, body)
    if changes:
        sandbox.save(body)
        sandbox.emit("customer.updated", body, changes)
    return body


def _delete(call: EndpointCall) -> Json:
    sandbox = call.sandbox
    body = load_customer(sandbox, call.ids[0], "id")
    for method in sandbox.store.select("payment_method", {"customer": body["id"]}):
        payment_methods.detach_method(sandbox, method)
    sandbox.emit("customer.deleted", body)
    deleted = {"id": body["id"], "object": "customer", "deleted": True}
    return sandbox.save(deleted)


def _own_methods(call: EndpointCall) -> Json:
    load_customer(call.sandbox, call.ids[0], "id")
    params = {**call.params, "customer": call.ids[0]}
    return payment_methods.LIST.handle(EndpointCall(call.sandbox, (), params))


def _own_method(call: EndpointCall) -> Json:
    return payment_methods.method_of_customer(call.sandbox, call.ids[1], call.ids[0], "id")


_PATH = "/v1/customers"
ENDPOINTS = (
    Endpoint("POST", _PATH, {**_FIELDS, "payment_method": Text()}, _create),
    searching("customer", _PATH),
    Endpoint("GET", f"{_PATH}/{{}}", EXPAND, lambda c: c.sandbox.load("customer", c.ids[0])),
    Endpoint(
        "POST", f"{_PATH}/{{}}", _FIELDS, lambda c: update_customer(c.sandbox, c.ids[0], c.params)
    ),
    Endpoint("DELETE", f"{_PATH}/{{}}", {}, _delete),
    listing("customer", _PATH, {"email": Text()}, lambda body: not body.get("deleted")),
    Endpoint(
        "GET",
        f"{_PATH}/{{}}/payment_methods",
        {n: f for n, f in payment_methods.LIST.fields.items() if n not in {"customer", "created"}},
        _own_methods,
    ),
    Endpoint("GET", f"{_PATH}/{{}}/payment_methods/{{}}", EXPAND, _own_method),
)

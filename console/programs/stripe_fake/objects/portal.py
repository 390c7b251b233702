"""Sessions of the customer portal: a hosted page on which a customer manages its cards."""

from __future__ import annotations

from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall
from console.programs.stripe_fake.errors import Json
from console.programs.stripe_fake.forms import EXPAND, Address, Fields, Text, choice_of
from console.programs.stripe_fake.objects import customers
from console.programs.stripe_fake.sandbox import Sandbox

# From the first visit; a session whose address nobody opened is void sooner at Stripe.
OPEN_S = 3600
CONFIGURATION = "bpc_freshet_fake"


def _create(call: EndpointCall) -> Json:
    sandbox = call.sandbox
    customers.load_customer(sandbox, call.params["customer"])
    session_id = sandbox.make_id("bps_")
    secret = sandbox.make_id("", 40)
    flow = call.params.get("flow_data")
    body: Json = {
        "id": session_id,
        "object": "billing_portal.session",
        "configuration": CONFIGURATION,
        "created": sandbox.now(),
        "customer": call.params["customer"],
        "customer_account": None,
        "flow": None
        if flow is None
        else {
            "after_completion": {
                "hosted_confirmation": None,
                "redirect": None,
                "type": "portal_homepage",
            },
            "subscription_cancel": None,
            "subscription_update": None,
            "subscription_update_confirm": None,
            "type": flow["type"],
        },
        "livemode": False,
        "locale": call.params.get("locale"),
        "on_behalf_of": None,
        "return_url": call.params.get("return_url"),
        "url": f"{sandbox.base}/portal/{secret}",
        "_secret": secret,
    }
    return sandbox.add(body)


def open_session(sandbox: Sandbox, secret: str) -> Json | None:
    """Returns the session of a page's address; None where there is none, or it has expired."""
    for body in sandbox.store.select("billing_portal.session", {"_secret": secret}):
        if body["created"] > sandbox.now() - OPEN_S:
            return body
    return None


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/billing_portal/sessions",
        {
            **EXPAND,
            "customer": Text(required=True),
            "flow_data": Fields({"type": choice_of(("payment_method_update",), required=True)}),
            "locale": Text(),
            "return_url": Address(),
        },
        _create,
    ),
)

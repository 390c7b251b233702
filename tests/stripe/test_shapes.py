"""What the fake answers and takes is what the pinned `stripe` package declares."""

import json

import pytest
import stripe
import stripe.params

from console.programs.stripe_fake.api import ENDPOINTS
from console.programs.stripe_fake.keys import API_VERSION
from tests.stripe.calls import REFUSED, error_of, make_calls
from tests.stripe.fake import AUTHENTICATED_ALWAYS, DISPUTED, REFUND_FAILS
from tests.stripe.shapes import complaints, parameter_complaints

KINDS = {
    "balance_transaction": stripe.BalanceTransaction,
    "billing_portal.session": stripe.billing_portal.Session,
    "charge": stripe.Charge,
    "checkout.session": stripe.checkout.Session,
    "customer": stripe.Customer,
    "dispute": stripe.Dispute,
    "event": stripe.Event,
    "payment_intent": stripe.PaymentIntent,
    "payment_method": stripe.PaymentMethod,
    "refund": stripe.Refund,
    "setup_intent": stripe.SetupIntent,
}
# The classes of parameters, beside those whose names follow from the path.
VERBS = {"GET": "Retrieve", "POST": "Create", "DELETE": "Delete"}
NOUNS = {
    "balance_transactions": "BalanceTransaction",
    "billing_portal/sessions": "billing_portal.Session",
    "charges": "Charge",
    "checkout/sessions": "checkout.Session",
    "customers": "Customer",
    "disputes": "Dispute",
    "events": "Event",
    "payment_intents": "PaymentIntent",
    "payment_methods": "PaymentMethod",
    "refunds": "Refund",
    "setup_intents": "SetupIntent",
}
ACTIONS = {"attach", "cancel", "close", "confirm", "detach", "expire", "search"}
NESTED = {
    "GET /v1/customers/{}/payment_methods": "CustomerListPaymentMethodsParams",
    "GET /v1/customers/{}/payment_methods/{}": "CustomerRetrievePaymentMethodParams",
}


def plain(answer):
    return json.loads(str(answer))


def params_class(endpoint):
    """The package's class of an endpoint's parameters."""
    name = NESTED.get(f"{endpoint.method} {endpoint.path}")
    module = stripe.params
    if name is None:
        path = endpoint.path.removeprefix("/v1/")
        folder = next(noun for noun in NOUNS if path == noun or path.startswith(f"{noun}/"))
        rest = path.removeprefix(folder).strip("/").split("/")
        package, _, noun = NOUNS[folder].rpartition(".")
        module = getattr(stripe.params, package) if package else module
        if rest[-1] in ACTIONS:
            verb = rest[-1].capitalize()
        elif endpoint.method == "GET":
            verb = "Retrieve" if rest == ["{}"] else "List"
        elif endpoint.method == "DELETE":
            verb = "Delete"
        else:
            verb = "Modify" if rest == ["{}"] else "Create"
        name = f"{noun}{verb}Params"
    return getattr(module, name)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_parameters_are_those_of_the_package(endpoint):
    assert list(parameter_complaints(endpoint.fields, params_class(endpoint), "")) == []


def test_every_answer_is_of_the_shape_that_the_package_declares(fake, v1):
    for name, answer in make_calls(v1).items():
        assert shape_complaints(plain(answer)) == [], name
    for kind in KINDS:
        for body in fake.objects(kind):
            assert shape_complaints(body) == []


def test_objects_of_failures_are_of_that_shape_too(fake, v1, customer):
    """Declines, authentication, disputes, refunds that fail: objects with members that others
    leave null.
    """
    for number in (AUTHENTICATED_ALWAYS, DISPUTED, REFUND_FAILS):
        checkout = v1.checkout.sessions.create({
            "mode": "setup",
            "currency": "usd",
            "customer": customer.id,
            "success_url": "https://console.example.com",
        })  # fmt: skip
        fake.give_card(checkout.url, number)
    methods = v1.payment_methods.list({"customer": customer.id}).data
    assert len(methods) == 3
    for method in methods:
        payment = {
            "amount": 700,
            "currency": "usd",
            "customer": customer.id,
            "payment_method": method.id,
            "confirm": True,
            "allowed_payment_method_types": ["card"],
            "return_url": "https://console.example.com",
        }
        intent = v1.payment_intents.create(payment)
        if intent.status == "succeeded" and method.card.last4 == REFUND_FAILS[-4:]:
            v1.refunds.create({"payment_intent": intent.id})
    with pytest.raises(stripe.CardError) as declined:
        v1.payment_intents.create({
            "amount": 700,
            "currency": "usd",
            "customer": customer.id,
            "payment_method": methods[-1].id,
            "confirm": True,
            "off_session": True,
        })  # fmt: skip
    assert shape_complaints(plain(error_of(declined).payment_intent)) == []
    fake.advance(120)
    kept = {kind: fake.objects(kind) for kind in KINDS}
    assert kept["dispute"]
    assert {"failed"} == {refund["status"] for refund in kept["refund"]}
    assert any(intent["next_action"] for intent in kept["payment_intent"])
    for bodies in kept.values():
        for body in bodies:
            assert shape_complaints(body) == []


def shape_complaints(body):
    if body["object"] in {"list", "search_result"}:
        return [line for item in body["data"] for line in shape_complaints(item)]
    if body.get("deleted"):
        return []
    return list(complaints(body, KINDS[body["object"]], body["object"]))


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_parameters_are_refused_by_name(v1, name):
    call, param = REFUSED[name]
    with pytest.raises(stripe.InvalidRequestError) as refused:
        call(v1)
    assert param in refused.value.param


def test_the_version_is_the_one_that_the_package_sends(v1, customer):
    assert stripe.StripeClient("sk_test_1")._requestor._options.stripe_version == API_VERSION
    assert customer.last_response.headers["stripe-version"] == API_VERSION


def test_another_version_is_refused(v1):
    with pytest.raises(stripe.InvalidRequestError, match="version"):
        v1.customers.list({}, {"stripe_version": "2020-08-27"})

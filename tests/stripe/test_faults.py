"""Faults: what each does to the caller, and to what was asked for."""

import pytest
import stripe

from console.programs.stripe_fake.faults import OF_ANSWERS
from tests.stripe.calls import client_of, error_of

PATH = "/v1/payment_intents"
KEY = {"idempotency_key": "inv:1:pay:1"}
# fault → (what the package raises, whether the charge was made all the same)
OUTCOMES = {
    "timeout": (stripe.APIConnectionError, False),
    "reset": (stripe.APIConnectionError, False),
    "409": (stripe.APIError, False),
    "429": (stripe.RateLimitError, False),
    "lock_timeout": (stripe.RateLimitError, False),
    "500": (stripe.APIError, False),
    "500_kept": (stripe.APIError, False),
    "expired_key": (stripe.AuthenticationError, False),
    "timeout_after_commit": (stripe.APIConnectionError, True),
    "reset_after_commit": (stripe.APIConnectionError, True),
    "500_after_commit": (stripe.APIError, True),
}
# What the same request with the same key gets once the fault is over.
KEPT = {"500_kept", "500_after_commit"}


@pytest.fixture
def params(v1, customer):
    method = v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    return {
        "amount": 1250,
        "currency": "usd",
        "customer": customer.id,
        "payment_method": method.id,
        "confirm": True,
        "off_session": True,
        "metadata": {"attempt": "att_1"},
    }


@pytest.mark.parametrize("kind", OUTCOMES)
def test_a_fault_does_what_it_says(fake, v1, params, kind):
    raised, done = OUTCOMES[kind]
    impatient = client_of(fake.base, fake.key, timeout_s=0.5)
    fake.add_fault(kind, path=PATH, method="POST")
    with pytest.raises(raised):
        impatient.payment_intents.create(params, KEY)
    assert len(fake.charges()) == done
    intents = fake.objects("payment_intent")
    assert [intent["metadata"] for intent in intents] == [{"attempt": "att_1"}] * done
    assert fake.control("GET", "faults")["data"] == []
    if kind in KEPT:
        with pytest.raises(stripe.APIError) as again:
            v1.payment_intents.create(params, KEY)
        assert again.value.http_status == 500
        assert (again.value.headers or {})["stripe-should-retry"] == "false"
    else:
        assert v1.payment_intents.create(params, KEY).status == "succeeded"
        assert len(fake.charges()) == 1


def test_every_fault_of_answers_is_tried():
    assert OUTCOMES.keys() | {"delay"} == OF_ANSWERS


def test_the_package_tries_again_by_the_same_key(fake, params):
    """What a network loses is made good by the library: one charge."""
    for kind in ("reset_after_commit", "500"):
        fake.add_fault(kind, path=PATH, method="POST")
    patient = client_of(fake.base, fake.key, retries=2)
    assert patient.payment_intents.create(params, KEY).status == "succeeded"
    assert len(fake.charges()) == 1


def test_an_unknown_outcome_can_be_looked_up(fake, v1, params):
    fake.add_fault("500_after_commit", path=PATH, method="POST")
    with pytest.raises(stripe.APIError):
        v1.payment_intents.create(params, KEY)
    (intent,) = v1.payment_intents.list({"customer": params["customer"]}).data
    assert (intent.status, intent.metadata["attempt"]) == ("succeeded", "att_1")


def test_search_shows_what_is_new_a_moment_later(fake, v1, params):
    fake.set_time(1_800_000_000)
    fake.control("POST", "settings", {"search_lag_s": 60})
    intent = v1.payment_intents.create(params)
    query = {"query": "metadata['attempt']:'att_1'"}
    fake.advance(59)
    assert v1.payment_intents.search(query).data == []
    fake.advance(1)
    assert [one.id for one in v1.payment_intents.search(query).data] == [intent.id]
    v1.payment_intents.update(intent.id, {"metadata": {"attempt": "att_2"}})
    assert [one.id for one in v1.payment_intents.search(query).data] == [intent.id]
    fake.advance(60)
    assert v1.payment_intents.search(query).data == []


def test_a_fault_acts_as_often_as_it_says_and_where(fake, v1, customer):
    fake.add_fault("429", path="/v1/customers/*", count=2)
    fake.add_fault("500", path="/v1/refunds", count=None)
    assert v1.customers.list().data
    for _ in range(2):
        with pytest.raises(stripe.RateLimitError):
            v1.customers.retrieve(customer.id)
    assert v1.customers.retrieve(customer.id).id == customer.id
    for _ in range(3):
        with pytest.raises(stripe.APIError):
            v1.refunds.list()
    fake.clear_faults()
    assert v1.refunds.list().data == []


@pytest.mark.parametrize("key", ["sk_test_other", "pk_test_freshet_fake"])
def test_only_the_fixed_key_opens_it(fake, key):
    with pytest.raises(stripe.AuthenticationError):
        client_of(fake.base, key).customers.list()


def test_an_expired_key_says_so(fake, v1):
    fake.add_fault("expired_key")
    with pytest.raises(stripe.AuthenticationError) as refused:
        v1.customers.list()
    assert error_of(refused).code == "api_key_expired"
    assert fake.key not in str(refused.value)


def test_the_control_api_has_a_token_of_its_own(fake):
    visit = fake.visit(f"{fake.base}/_fake/objects/charge")
    assert visit.status == 401

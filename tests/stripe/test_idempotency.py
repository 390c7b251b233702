"""Idempotency keys: one key, one charge, whatever happens to the answers."""

import threading

import pytest
import stripe

from tests.stripe.calls import client_of, error_of
from tests.stripe.fake import DECLINES_CHARGES

DAY_S = 86_400


@pytest.fixture
def card(v1, customer):
    return v1.payment_methods.attach("pm_card_visa", {"customer": customer.id}).id


@pytest.fixture
def params(customer, card):
    return {
        "amount": 1250,
        "currency": "usd",
        "customer": customer.id,
        "payment_method": card,
        "confirm": True,
        "off_session": True,
    }


KEY = {"idempotency_key": "inv:1:pay:1"}


def test_the_same_request_gets_the_first_answer(fake, v1, params):
    first = v1.payment_intents.create(params, KEY)
    v1.refunds.create({"payment_intent": first.id})
    again = v1.payment_intents.create(params, KEY)
    assert str(again) == str(first)
    assert again.last_response.headers["idempotent-replayed"] == "true"
    assert again.last_response.headers["original-request"] == first.last_response.request_id
    assert len(fake.charges()) == 1


def test_another_request_with_the_key_is_refused(fake, v1, params):
    v1.payment_intents.create(params, KEY)
    with pytest.raises(stripe.IdempotencyError, match="same parameters"):
        v1.payment_intents.create({**params, "amount": 1251}, KEY)
    with pytest.raises(stripe.IdempotencyError, match="same endpoint"):
        v1.customers.create({}, KEY)
    assert len(fake.charges()) == 1


def test_a_decline_is_kept(fake, v1, params):
    fake.change_card(params["payment_method"], declines="insufficient_funds")
    with pytest.raises(stripe.CardError) as first:
        v1.payment_intents.create(params, KEY)
    fake.change_card(params["payment_method"], declines=None)
    with pytest.raises(stripe.CardError) as again:
        v1.payment_intents.create(params, KEY)
    assert again.value.json_body == first.value.json_body
    assert fake.charges() == []
    assert v1.payment_intents.create(params, {"idempotency_key": "inv:1:pay:2"}).id
    assert len(fake.charges()) == 1


def test_wrong_parameters_are_not_kept(v1, params):
    with pytest.raises(stripe.InvalidRequestError):
        v1.payment_intents.create({**params, "amount": "much"}, KEY)
    assert v1.payment_intents.create(params, KEY).status == "succeeded"


def test_a_refusal_of_what_has_begun_is_kept(v1, params):
    small = {**params, "amount": 10}
    with pytest.raises(stripe.InvalidRequestError):
        v1.payment_intents.create(small, KEY)
    with pytest.raises(stripe.IdempotencyError):
        v1.payment_intents.create(params, KEY)


def test_a_key_ends_after_a_day(fake, v1, params):
    fake.set_time(1_800_000_000)
    first = v1.payment_intents.create(params, KEY)
    fake.advance(DAY_S - 1)
    assert v1.payment_intents.create(params, KEY).id == first.id
    fake.advance(1)
    second = v1.payment_intents.create(params, KEY)
    assert second.id != first.id
    assert len(fake.charges()) == 2


def test_a_request_beside_the_first_one_waits_for_nothing(fake, v1, params):
    """The second of two at once gets 409; the first one is done once."""
    fake.add_fault("delay", path="/v1/payment_intents", seconds=60)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(v1.payment_intents.create(params, KEY)))
    thread.start()
    wait_until_taken(fake)
    other = client_of(fake.base, fake.key)
    with pytest.raises(stripe.APIError) as refused:
        other.payment_intents.create(params, KEY)
    assert refused.value.http_status == 409
    assert error_of(refused).code == "idempotency_key_in_use"
    fake.server.end_delays()
    thread.join()
    assert [answer.status for answer in answers] == ["succeeded"]
    assert other.payment_intents.create(params, KEY).id == answers[0].id
    assert len(fake.charges()) == 1


def wait_until_taken(fake):
    """Waits until a request has begun to be delayed."""
    assert fake.server.delay_began.wait(30)


def test_keys_have_a_length(v1):
    assert v1.customers.create({}, {"idempotency_key": "k" * 255}).id
    with pytest.raises(stripe.InvalidRequestError):
        v1.customers.create({}, {"idempotency_key": "k" * 256})


def test_keys_of_events_name_their_request(fake, v1, params):
    intent = v1.payment_intents.create(params, KEY)
    (event,) = [e for e in fake.objects("event") if e["type"] == "payment_intent.succeeded"]
    assert event["request"] == {"id": intent.last_response.request_id, **KEY}
    assert event["data"]["object"]["id"] == intent.id


def test_a_declining_card_of_stripes_own_leaves_one_failed_charge(fake, v1, customer):
    method = v1.payment_methods.attach("pm_card_chargeCustomerFail", {"customer": customer.id})
    assert method.card.last4 == DECLINES_CHARGES[-4:]
    whole = {
        "amount": 900,
        "currency": "usd",
        "customer": customer.id,
        "payment_method": method.id,
        "confirm": True,
        "off_session": True,
    }
    for _ in range(2):
        with pytest.raises(stripe.CardError):
            v1.payment_intents.create(whole, KEY)
    assert len(fake.charges(paid=False)) == 1

"""Webhooks: signed, tried again until they are taken, and everything that goes wrong with them."""

import json

import pytest
import stripe

from tests.stripe.calls import client_of
from tests.stripe.fake import running_fake
from tests.stripe.receiver import receiving


@pytest.fixture
def receiver():
    with receiving() as running:
        yield running


@pytest.fixture
def sending(receiver):
    """A fake that sends to the receiver."""
    with running_fake(webhook=receiver.url) as running:
        yield running


def verified(fake, body, signature):
    """The event of a delivery, as the package verifies it."""
    return stripe.Webhook.construct_event(body, signature, fake.secret)


def test_an_event_comes_signed_and_can_be_fetched(sending, receiver):
    v1 = client_of(sending.base, sending.key)
    customer = v1.customers.create({"name": "Ada"})
    ((body, signature),) = receiver.wait_for(1)
    event = verified(sending, body, signature)
    assert (event.type, event.data.object.id) == ("customer.created", customer.id)
    fetched = v1.events.retrieve(event.id)
    assert fetched.data.object.to_dict() == event.data.object.to_dict()


def test_what_is_not_taken_comes_again(sending, receiver):
    receiver.statuses = [500, 302]
    client_of(sending.base, sending.key).customers.create({})
    receiver.wait_for(1)
    while len(receiver.came) < 3:  # without the wait between attempts
        sending.control("POST", "deliveries/flush")
    bodies = {body for body, _ in receiver.wait_for(3)}
    assert len(bodies) == 1
    (delivery,) = sending.control("GET", "deliveries")["data"]
    assert (delivery["state"], delivery["attempts"], delivery["status"]) == ("done", 3, 200)


def test_an_event_waits_for_a_receiver_that_is_away(fake, v1, receiver):
    customer = v1.customers.create({})
    fake.control("POST", "settings", {"webhook": "http://127.0.0.1:1/webhooks"})
    fake.control("POST", "deliveries/flush")
    (delivery,) = fake.control("GET", "deliveries")["data"]
    assert (delivery["state"], delivery["status"]) == ("waiting", None)
    (event,) = v1.events.list().data
    assert event.pending_webhooks == 1
    fake.control("POST", "settings", {"webhook": receiver.url})
    fake.control("POST", "deliveries/flush")
    ((body, _),) = receiver.wait_for(1)
    assert json.loads(body)["data"]["object"]["id"] == customer.id
    assert v1.events.retrieve(event.id).pending_webhooks == 0


def take_all(fake):
    """What a test that passes webhooks on itself gets, in the order of sending."""
    return [json.loads(one["body"]) for one in fake.take_webhooks()]


def test_a_duplicate_is_the_same_event(fake, v1):
    fake.add_webhook_fault("duplicate", "customer.*", copies=2)
    v1.customers.create({})
    v1.customers.create({})
    ids = [event["id"] for event in take_all(fake)]
    assert len(ids) == 4
    assert len(set(ids)) == 2


def test_a_lost_webhook_is_in_the_list_of_events(fake, v1):
    fake.add_webhook_fault("drop")
    v1.customers.create({})
    assert take_all(fake) == []
    assert [event.type for event in v1.events.list().data] == ["customer.created"]


def test_webhooks_come_in_another_order(fake, v1):
    fake.add_webhook_fault("reorder", count=None)
    for name in ("a", "b", "c"):
        v1.customers.create({"name": name})
    fake.clear_faults()
    v1.customers.create({"name": "d"})
    states = fake.control("GET", "deliveries")["data"]
    names = [json.loads(one["body"])["data"]["object"]["name"] for one in states]
    assert names == ["c", "b", "a", "d"]


def test_a_late_webhook_is_not_due_yet(fake, v1):
    fake.add_webhook_fault("delay", seconds=3600)
    fake.add_webhook_fault("hold", "customer.updated")
    customer = v1.customers.create({})
    v1.customers.update(customer.id, {"name": "Ada"})
    assert take_all(fake) == []
    fake.control("POST", "deliveries/release")
    assert [event["type"] for event in take_all(fake)] == ["customer.updated"]


def test_forged_and_old_webhooks_are_not_verified(fake, v1):
    fake.add_webhook_fault("forge")
    fake.add_webhook_fault("stale", "customer.updated")
    customer = v1.customers.create({})
    v1.customers.update(customer.id, {"name": "Ada"})
    genuine, forged, stale = fake.take_webhooks()
    assert verified(fake, genuine["body"], genuine["headers"]["Stripe-Signature"])
    for one in (forged, stale):
        with pytest.raises(stripe.SignatureVerificationError):
            verified(fake, one["body"], one["headers"]["Stripe-Signature"])
    with pytest.raises(stripe.InvalidRequestError):
        v1.events.retrieve(json.loads(forged["body"])["id"])


def test_what_a_test_passed_on_is_settled(fake, v1):
    v1.customers.create({})
    (one,) = fake.take_webhooks()
    fake.settle_webhook(one["id"], 503)
    assert fake.take_webhooks() == []
    (delivery,) = fake.control("GET", "deliveries")["data"]
    assert (delivery["state"], delivery["attempts"]) == ("waiting", 1)
    fake.settle_webhook(one["id"], 200)
    (delivery,) = fake.control("GET", "deliveries")["data"]
    assert (delivery["state"], delivery["attempts"]) == ("done", 2)
    (event,) = v1.events.list().data
    fake.control("POST", f"events/{event.id}/resend")
    assert [again["id"] for again in take_all(fake)] == [event.id]


def test_events_are_listed_for_thirty_days(fake, v1):
    fake.set_time(1_800_000_000)
    v1.customers.create({})
    (event,) = v1.events.list({"types": ["customer.created"]}).data
    fake.advance(30 * 86_400)
    assert len(v1.events.list().data) == 1
    fake.advance(1)
    assert v1.events.list().data == []
    with pytest.raises(stripe.InvalidRequestError):
        v1.events.retrieve(event.id)

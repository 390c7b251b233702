"""Stripe's webhook: only what Stripe signed, once, in any order, or not at all."""

import dataclasses
import json
import time

import pytest
import stripe
from django.test import Client

from billing.collection.tasks import catch_up_events, sweep_collection
from billing.models import StripeEvent
from console.base.common.conf import config
from console.base.common.rates import WINDOW_S
from console.programs.stripe_fake.keys import WEBHOOK_SECRET
from tests.billing.collection.world import WEBHOOK
from tests.console.cases import assert_problem

SIGN = stripe.WebhookSignature.generate_signature_header


def an_event(event_id="evt_1", kind="payment_intent.succeeded"):
    return json.dumps(
        {
            "id": event_id,
            "object": "event",
            "type": kind,
            "created": 1_790_000_000,
            "data": {"object": {"id": "pi_1", "object": "payment_intent"}},
        }
    )


# Within the limit of a body, and beyond what Python's parser walks.
DEEP = "[" * 100_000 + "]" * 100_000


def send(client, body, signature):
    return client.post(
        WEBHOOK,
        data=body,
        content_type="application/json",
        headers={"Stripe-Signature": signature},
    )


def events():
    return list(StripeEvent.objects.values_list("pk", "type", "object_id"))


def test_a_signed_event_is_stored_once_and_answered_at_once(world):
    body = an_event()
    for _ in range(2):
        assert send(world.client, body, SIGN(body, WEBHOOK_SECRET)).status_code == 200
    assert events() == [("evt_1", "payment_intent.succeeded", "pi_1")]
    assert world.objects("payment_intent") == []


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "t=1,v1=00",
        "v1=00",
        "nonsense",
        SIGN(an_event(), "whsec_of_an_attacker"),
        SIGN(an_event("evt_2"), WEBHOOK_SECRET),
        SIGN(an_event(), WEBHOOK_SECRET, int(time.time()) - 3600),
        f"t={int(time.time())},v1=\xe9\xff",
        f"t={int(time.time())},v1=" + "٣" * 64,
    ],
    ids=[
        *("none", "old", "no time", "nonsense", "another secret", "another body", "an hour ago"),
        *("bytes", "digits of another script"),
    ],
)
def test_what_stripe_did_not_sign_just_now_is_refused_and_not_stored(world, signature):
    assert_problem(send(world.client, an_event(), signature), 400, "bad_request")
    assert events() == []


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", "null", '{"id": "evt_1"}', "\xff", "x" * 100, DEEP]
)
def test_a_signed_body_that_is_no_event_is_refused(world, body):
    assert send(world.client, body, SIGN(body, WEBHOOK_SECRET)).status_code == 400
    assert events() == []


def test_bytes_that_are_no_text_are_refused(world):
    assert send(world.client, b"\xff\xfe", "t=1,v1=00").status_code == 400


def test_a_body_that_is_too_large_is_refused(world):
    body = an_event("evt_" + "x" * 300_000)
    assert_problem(send(world.client, body, SIGN(body, WEBHOOK_SECRET)), 413, "body_too_large")


def test_several_secrets_hold_while_one_replaces_another(world, collector):
    collector("stripe", stripe_webhook_secret="whsec_new, whsec_old")
    for number, secret in enumerate(("whsec_new", "whsec_old")):
        body = an_event(f"evt_{number}")
        assert send(world.client, body, SIGN(body, secret)).status_code == 200
    body = an_event("evt_3")
    assert send(world.client, body, SIGN(body, "whsec_older")).status_code == 400


def test_without_a_secret_nothing_is_taken(world, collector):
    collector("none", stripe_webhook_secret="")
    assert send(world.client, an_event(), SIGN(an_event(), "whsec_x")).status_code == 400


def test_what_stripe_signed_counts_against_no_address(world, settings):
    """Whoever uses the address's limit up, with requests that nobody signed, stops no event."""
    known = config()
    limits = dataclasses.replace(known.limits, anonymous_requests_per_second=1)
    settings.FRESHET = dataclasses.replace(known, limits=limits)
    forged = [send(world.client, an_event(), "t=1,v1=00").status_code for _ in range(3 * WINDOW_S)]
    assert 429 in forged
    for number in range(2 * WINDOW_S):
        body = an_event(f"evt_{number}")
        assert send(world.client, body, SIGN(body, WEBHOOK_SECRET)).status_code == 200
    assert len(events()) == 2 * WINDOW_S


def test_webhooks_need_no_token_of_a_form(world):
    """The endpoint has no session, so Django's protection of forms does not hold it up."""
    body = an_event()
    client = Client(enforce_csrf_checks=True)
    assert send(client, body, SIGN(body, WEBHOOK_SECRET)).status_code == 200


@pytest.mark.parametrize("kind", ["duplicate", "reorder", "forge", "stale", "drop"])
def test_the_same_becomes_of_an_invoice_whatever_webhooks_do(world, kind):
    world.webhook_fault(kind)
    world.give_card()
    invoice_id = world.issue(1250)
    # The answer is lost, so that only what is heard later says what became of it.
    world.fault("reset_after_commit", path="/v1/payment_intents")
    world.beat()
    world.heal()
    world.webhook_fault(kind)
    statuses = [status for _ in range(3) for status in world.deliver()]
    world.settle()
    if kind in {"forge", "stale"}:
        assert 400 in statuses
    assert world.charges_of(invoice_id) == 1
    assert world.receivable(invoice_id).state == "paid"
    assert not StripeEvent.objects.filter(handled_at=None).exists()


def test_an_event_that_no_webhook_brought_is_read(world):
    world.webhook_fault("drop")
    world.give_card()
    assert world.deliver() == []
    before = StripeEvent.objects.count()
    catch_up_events()
    assert StripeEvent.objects.count() > before
    assert not StripeEvent.objects.filter(by_webhook=True).exists()
    world.work()
    assert not StripeEvent.objects.filter(handled_at=None).exists()


def test_an_event_is_handled_later_where_stripe_does_not_answer(world):
    world.give_card()
    world.issue(1250)
    world.beat()
    world.fault("500", count=None)
    world.deliver()
    world.work()
    waiting = StripeEvent.objects.filter(handled_at=None)
    assert waiting.exists()
    assert all(event.last_error for event in waiting)
    world.heal()
    world.move(hours=2)
    sweep_collection()
    world.work()
    assert not StripeEvent.objects.filter(handled_at=None).exists()


def test_an_event_about_somebody_elses_charge_changes_nothing(world):
    body = an_event("evt_9", "customer.updated")
    send(world.client, body, SIGN(body, WEBHOOK_SECRET))
    world.work()
    (event,) = StripeEvent.objects.filter(pk="evt_9")
    assert event.handled_at is not None

"""Refunds and disputes: what goes back is never more than what came."""

import pytest
import stripe
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stripe.calls import client_of, error_of
from tests.stripe.fake import running_fake


@pytest.fixture
def charge(v1, customer):
    """Charges 1,000 by one of Stripe's own cards; returns the intent."""

    def charge(known="pm_card_visa"):
        method = v1.payment_methods.attach(known, {"customer": customer.id})
        return pay(v1, customer.id, method.id)

    return charge


def pay(v1, customer_id, method_id, amount=1000):
    return v1.payment_intents.create({
        "amount": amount, "currency": "usd", "customer": customer_id, "payment_method": method_id,
        "confirm": True, "off_session": True,
    })  # fmt: skip


def balance(fake):
    """What the charges, refunds and disputes did to the balance, without Stripe's fees."""
    return sum(movement["amount"] for movement in fake.objects("balance_transaction"))


def test_parts_of_a_charge_go_back_until_nothing_is_left(fake, v1, charge):
    intent = charge()
    first = v1.refunds.create({"payment_intent": intent.id, "amount": 400})
    assert (first.status, first.charge) == ("succeeded", intent.latest_charge)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        v1.refunds.create({"charge": intent.latest_charge, "amount": 601})
    assert refused.value.param == "amount"
    assert v1.refunds.create({"charge": intent.latest_charge}).amount == 600
    with pytest.raises(stripe.InvalidRequestError) as refused:
        v1.refunds.create({"charge": intent.latest_charge})
    assert refused.value.code == "charge_already_refunded"
    (body,) = fake.objects("charge")
    assert (body["amount_refunded"], body["refunded"]) == (1000, True)
    assert balance(fake) == 0


def test_only_what_was_taken_goes_back(v1, charge, customer):
    draft = v1.payment_intents.create({"amount": 900, "currency": "usd"})
    with pytest.raises(stripe.InvalidRequestError):
        v1.refunds.create({"payment_intent": draft.id})
    with pytest.raises(stripe.CardError) as declined:
        charge("pm_card_chargeCustomerFail")
    with pytest.raises(stripe.InvalidRequestError):
        v1.refunds.create({"charge": error_of(declined).charge})
    with pytest.raises(stripe.InvalidRequestError):
        v1.refunds.create({"amount": 5})


def test_a_refund_may_take_a_while(fake, v1, charge):
    fake.set_time(1_800_000_000)
    refund = v1.refunds.create({"payment_intent": charge("pm_card_pendingRefund").id})
    assert refund.status == "pending"
    fake.advance(60)
    assert v1.refunds.retrieve(refund.id).status == "succeeded"
    types = {event["type"] for event in fake.objects("event")}
    assert {"refund.created", "refund.updated", "charge.refunded"} <= types


def test_a_refund_may_fail_after_it_succeeded(fake, v1, charge):
    fake.set_time(1_800_000_000)
    intent = charge("pm_card_refundFail")
    refund = v1.refunds.create({"payment_intent": intent.id, "amount": 300})
    assert refund.status == "succeeded"
    fake.advance(60)
    failed = v1.refunds.retrieve(refund.id)
    assert (failed.status, failed.failure_reason) == ("failed", "unknown")
    (body,) = fake.objects("charge")
    assert (body["amount_refunded"], body["refunded"]) == (0, False)
    assert balance(fake) == 1000
    assert "refund.failed" in {event["type"] for event in fake.objects("event")}


@pytest.mark.parametrize("won", [True, False])
def test_a_dispute_takes_the_money_until_it_is_won(fake, v1, charge, won):
    intent = charge()
    v1.refunds.create({"payment_intent": intent.id, "amount": 250})
    dispute = fake.dispute(intent.latest_charge)
    assert (dispute["amount"], dispute["status"]) == (750, "needs_response")
    assert balance(fake) == 0
    with pytest.raises(stripe.InvalidRequestError) as refused:
        v1.refunds.create({"payment_intent": intent.id})
    assert refused.value.code == "charge_disputed"
    evidence = "winning_evidence" if won else "losing_evidence"
    v1.disputes.update(dispute["id"], {"evidence": {"uncategorized_text": evidence}})
    closed = v1.disputes.retrieve(dispute["id"])
    assert closed.status == ("won" if won else "lost")
    assert balance(fake) == (750 if won else 0)
    types = [e["type"] for e in fake.objects("event") if "dispute" in e["type"]]
    ended = ["charge.dispute.closed"] + ["charge.dispute.funds_reinstated"] * won
    assert types == [
        "charge.dispute.created",
        "charge.dispute.funds_withdrawn",
        "charge.dispute.updated",
        *ended,
    ]
    assert v1.disputes.list({"charge": intent.latest_charge}).data[0].id == dispute["id"]


def test_a_dispute_without_an_answer_is_lost(fake, v1, charge):
    fake.set_time(1_800_000_000)
    dispute = fake.dispute(charge().latest_charge)
    fake.advance(9 * 86_400)
    lost = v1.disputes.retrieve(dispute["id"])
    assert (lost.status, lost.evidence_details.past_due) == ("lost", True)


def test_an_inquiry_takes_no_money(fake, v1, charge):
    intent = charge("pm_card_createDisputeInquiry")
    (dispute,) = v1.disputes.list({"payment_intent": intent.id}).data
    assert dispute.status == "warning_needs_response"
    assert balance(fake) == 1000
    assert v1.refunds.create({"payment_intent": intent.id}).status == "succeeded"
    assert v1.disputes.close(dispute.id).status == "warning_closed"


def test_some_cards_dispute_each_charge(fake, v1, charge):
    intent = charge("pm_card_createDispute")
    assert intent.status == "succeeded"
    (dispute,) = v1.disputes.list({"payment_intent": intent.id}).data
    assert (dispute.reason, dispute.amount) == ("fraudulent", 1000)
    assert balance(fake) == 0
    closed = fake.close_dispute(dispute.id, won=True)
    assert closed["status"] == "won"
    with pytest.raises(stripe.InvalidRequestError):
        v1.disputes.close(dispute.id)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("refund"), st.integers(1, 1200)),
        st.tuples(st.just("dispute"), st.booleans()),
        st.tuples(st.just("close"), st.booleans()),
        st.tuples(st.just("advance"), st.integers(1, 100)),
    ),
    max_size=8,
)
FAILING = st.sampled_from(["pm_card_visa", "pm_card_pendingRefund", "pm_card_refundFail"])


@settings(max_examples=40, deadline=None)
@given(FAILING, STEPS)
def test_no_order_of_returns_gives_back_more_than_was_taken(one_fake, known, steps):
    """Whatever happens in whatever order: the balance is what its movements are, and between 0 and
    the charge.
    """
    fake, v1 = one_fake
    customer = v1.customers.create({"payment_method": "pm_card_visa"})
    method = v1.payment_methods.attach(known, {"customer": customer.id})
    intent = pay(v1, customer.id, method.id)
    for verb, value in steps:
        try:
            if verb == "refund":
                v1.refunds.create({"payment_intent": intent.id, "amount": value})
            elif verb == "dispute":
                fake.dispute(intent.latest_charge, inquiry=value)
            elif verb == "close":
                for dispute in v1.disputes.list({"charge": intent.latest_charge}).data:
                    fake.close_dispute(dispute.id, won=value)
            else:
                fake.advance(value)
        except (stripe.InvalidRequestError, fake.Refused):
            pass
        charge = v1.charges.retrieve(intent.latest_charge)
        refunds = v1.refunds.list({"charge": charge.id}).data
        disputes = v1.disputes.list({"charge": charge.id}).data
        held = sum(r.amount for r in refunds if r.status in {"pending", "succeeded"})
        assert charge.amount_refunded == held <= 1000
        disputed = sum(m.amount for dispute in disputes for m in dispute.balance_transactions)
        moved = sum(
            movement.amount
            for source in (charge, *refunds, *disputes)
            for movement in v1.balance_transactions.list({"source": source.id}).data
        )
        assert 0 <= moved == 1000 - held + disputed


@pytest.fixture(scope="module")
def one_fake():
    """One fake for all examples, with a stopped clock."""
    with running_fake() as running:
        running.set_time(1_800_000_000)
        yield running, client_of(running.base, running.key)

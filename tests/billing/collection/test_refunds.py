"""Refunds and disputes: by Stripe first, then in the ledger, once."""

import pytest

from billing.choices import PaymentMethod, RefundState
from billing.collection.gateway import gateway
from billing.collection.refunds import request_refund
from billing.errors import PaymentConflict, RefundTooLarge
from billing.models import Dispute, Payment, Refund, RefundAttempt
from console.base.common.tenancy import organization_scope
from tests.billing.collection.world import DISPUTED
from tests.billing.receivables.ledgers import accounts

PENDS, FAILS_LATER = "4000000000007726", "4000000000005126"


@pytest.fixture
def paid(world):
    """An organization that paid an invoice by card."""
    world.give_card()
    world.invoice = world.issue(1250)
    world.beat()
    return world


def ask(world, amount_minor=1250, name="ticket 1", **more):
    with organization_scope(world.id):
        payment = Payment.objects.get()
        assert payment.method == PaymentMethod.CARD
        return request_refund(
            payment=payment,
            amount_minor=amount_minor,
            external_id=name,
            by="tests",
            reason="an outage",
            **more,
        )


def refunds(world):
    with organization_scope(world.id):
        return list(Refund.objects.values_list("amount_minor", "reason", "entered_by"))


def test_a_refund_is_made_at_stripe_and_then_entered(paid):
    asked = ask(paid, 250)
    assert refunds(paid) == []
    paid.work()
    assert refunds(paid) == [(250, "an outage", "tests")]
    assert [one["amount"] for one in paid.objects("refund")] == [250]
    with organization_scope(paid.id):
        assert RefundAttempt.objects.get(pk=asked.pk).state == RefundState.SUCCEEDED
    paid.settle()
    assert refunds(paid) == [(250, "an outage", "tests")]


@pytest.mark.parametrize("kind", ["reset_after_commit", "500_after_commit", "409", "429", "500"])
def test_whatever_fails_money_is_given_back_once(paid, kind):
    ask(paid, 250)
    paid.fault(kind, path="/v1/refunds*")
    paid.work()
    paid.heal()
    for _ in range(26):
        paid.settle(rounds=1)
        if refunds(paid):
            break
    paid.settle(rounds=2)
    assert refunds(paid) == [(250, "an outage", "tests")]
    assert len(paid.objects("refund")) == 1


def test_the_same_request_is_the_same_refund(paid):
    assert ask(paid, 250).pk == ask(paid, 250).pk
    with pytest.raises(PaymentConflict):
        ask(paid, 300)
    with pytest.raises(RefundTooLarge):
        ask(paid, 1001, "ticket 2")
    ask(paid, 1000, "ticket 3")
    paid.work()
    assert sum(amount for amount, *_ in refunds(paid)) == 1250


def test_what_was_given_back_is_owed_again_and_never_charged_by_itself(paid):
    ask(paid, 1250)
    paid.work()
    assert paid.receivable(paid.invoice).open_minor == 1250
    paid.live_through(20)
    assert paid.charges_of(paid.invoice) == 1
    assert paid.receivable(paid.invoice).open_minor == 1250


def test_goodwill_leaves_the_invoice_paid(paid):
    ask(paid, 1250, is_goodwill=True)
    paid.work()
    assert paid.receivable(paid.invoice).state == "paid"
    assert accounts(paid.id)["goodwill"] == 1250


def test_a_refund_that_somebody_makes_at_stripe_is_entered(paid):
    (intent,) = paid.objects("payment_intent")
    gateway().create_refund(key="by hand", intent_id=intent["id"], amount_minor=100, metadata={})
    paid.deliver()
    paid.work()
    assert refunds(paid) == [(100, "Refunded at Stripe.", "stripe")]


def test_a_refund_that_takes_a_while_is_entered_when_it_has_succeeded(world):
    world.give_card(PENDS)
    world.issue(1250)
    world.beat()
    ask(world, 250)
    world.work()
    assert refunds(world) == []
    world.settle()
    assert refunds(world) == [(250, "an outage", "tests")]


def test_a_dispute_holds_the_money_until_it_is_decided(world):
    world.give_card(DISPUTED)
    invoice_id = world.issue(1250)
    world.beat()
    world.settle()
    with organization_scope(world.id):
        assert [one.state for one in Dispute.objects.all()] == ["open"]
    assert accounts(world.id)["disputed"] == 1250
    assert world.receivable(invoice_id).state == "paid"
    (dispute,) = world.objects("dispute")
    world.control("POST", f"disputes/{dispute['id']}/close", won=False)
    world.settle()
    assert world.receivable(invoice_id).open_minor == 1250
    world.live_through(20)
    assert world.charges_of(invoice_id) == 1


def test_a_dispute_that_is_won_changes_nothing_in_the_end(world):
    world.give_card(DISPUTED)
    invoice_id = world.issue(1250)
    world.beat()
    (dispute,) = world.objects("dispute")
    # Both events come only after all is decided.
    world.control("POST", f"disputes/{dispute['id']}/close", won=True)
    world.settle()
    with organization_scope(world.id):
        assert [one.state for one in Dispute.objects.all()] == ["won"]
    assert world.receivable(invoice_id).state == "paid"
    assert accounts(world.id) == {"card_clearing": 1250, "revenue": -1250}


def test_an_inquiry_takes_no_money_and_is_not_entered(world):
    world.give_card("4000000000001976")
    world.issue(1250)
    world.beat()
    world.settle()
    assert len(world.objects("dispute")) == 1
    with organization_scope(world.id):
        assert not Dispute.objects.exists()

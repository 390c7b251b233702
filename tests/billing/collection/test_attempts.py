"""Charges under every fault of the fake: one for each invoice, and nothing stuck."""

import pytest
from django.db import IntegrityError, transaction

from billing.choices import AttemptState
from billing.collection.attempts import live_attempt, send_attempt
from billing.collection.collecting import collect_due, collect_organization
from billing.collection.gateway import OutcomeUnknown, gateway
from billing.models import Payment, PaymentAttempt
from billing.receivables.services import record_payment
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import WaitInTransaction
from tests.billing.collection.world import ASKS_ALWAYS, DECLINES_LATER, GOOD
from tests.console.scopes import rolled_back

INTENTS = "/v1/payment_intents"


def payments():
    with system_scope():
        return list(Payment.objects.values_list("method", "amount_minor"))


def require_paid_once(world, invoice_id, amount_minor=1250):
    """The invoice was charged once, what was charged is entered once, and nothing is left to do."""
    assert world.charges_of(invoice_id) == 1
    assert payments() == [("card", amount_minor)]
    assert world.receivable(invoice_id).state == "paid"
    assert all(not attempt.is_live for attempt in world.attempts())


def test_an_issued_invoice_is_charged_within_one_round(world):
    world.give_card()
    invoice_id = world.issue(1250)
    world.beat()
    require_paid_once(world, invoice_id)
    (attempt,) = world.attempts()
    assert (attempt.key, attempt.state) == (f"inv:{invoice_id}:pay:1", "succeeded")
    world.settle()
    require_paid_once(world, invoice_id)


@pytest.mark.parametrize(
    "kind",
    ["reset_after_commit", "500_after_commit", "500_kept", "409", "429", "500", "expired_key"],
)
@pytest.mark.parametrize("path", [INTENTS, pytest.param("/v1/*", marks=pytest.mark.full)])
def test_whatever_fails_an_invoice_is_charged_once(world, kind, path):
    world.give_card()
    invoice_id = world.issue(1250)
    world.fault(kind, path=path)
    world.beat()
    world.heal()
    world.settle_until_paid(invoice_id)
    world.settle(rounds=2)
    require_paid_once(world, invoice_id)


def test_a_lost_answer_leaves_the_outcome_unknown_until_it_is_looked_up(world):
    world.give_card()
    invoice_id = world.issue(1250)
    world.fault("reset_after_commit", path=INTENTS)
    world.beat()
    (attempt,) = world.attempts()
    assert (attempt.state, attempt.intent_id) == (AttemptState.UNKNOWN, None)
    assert payments() == []
    world.heal()
    world.move(minutes=2)
    world.beat()
    require_paid_once(world, invoice_id)


def test_after_a_day_an_attempt_is_looked_up_before_it_is_made_again(world):
    world.give_card()
    invoice_id = world.issue(1250)
    world.fault("reset_after_commit", path=INTENTS)
    world.beat()
    world.heal()
    world.move(hours=30)
    world.beat()
    require_paid_once(world, invoice_id)


def test_a_restored_database_does_not_charge_what_it_forgot(world):
    world.give_card()
    invoice_id = world.issue(1250)
    with rolled_back():
        collect_due()
        world.work()
        assert world.charges_of(invoice_id) == 1
    assert world.attempts() == []
    world.move(hours=30)
    world.beat()
    world.settle()
    require_paid_once(world, invoice_id)


def test_two_workers_at_once_charge_once(world):
    world.give_card()
    invoice_id = world.issue(1250)
    attempt = collect_organization(organization_id=world.id)
    assert attempt is not None
    assert collect_organization(organization_id=world.id) is None
    for _ in range(3):
        send_attempt(organization_id=world.id, attempt_id=attempt.pk)
    require_paid_once(world, invoice_id)


def test_the_database_allows_one_live_attempt(world):
    world.give_card()
    world.issue(1250)
    collect_organization(organization_id=world.id)
    with organization_scope(world.id):
        attempt = live_attempt(world.id)
        assert attempt is not None
        attempt.pk, attempt.key, attempt.number = "pat_other", "another", 9
        with pytest.raises(IntegrityError, match="one_live_attempt"), transaction.atomic():
            attempt.save(force_insert=True)


def test_what_was_paid_a_moment_before_is_not_charged(world):
    world.give_card()
    invoice_id = world.issue(1250)
    collect_organization(organization_id=world.id)
    with organization_scope(world.id):
        record_payment(
            organization_id=world.id,
            method="transfer",
            amount_minor=1250,
            currency="USD",
            external_id="bank 1",
            received_at=world.clock.now,
            by="tests",
        )
    world.work()
    assert world.charges_of(invoice_id) == 0
    assert [attempt.state for attempt in world.attempts()] == ["canceled"]
    assert world.objects("payment_intent") == []


def test_small_invoices_wait_and_are_charged_with_the_next_one(world):
    world.give_card()
    small = [world.issue(20), world.issue(15)]
    world.beat()
    assert world.attempts() == []
    large = world.issue(1250)
    world.beat()
    assert [world.charges_of(one) for one in [*small, large]] == [1, 1, 1]
    assert payments() == [("card", 1285)]
    assert len(world.attempts()) == 1


def test_a_declined_intent_can_never_charge_later(world):
    world.give_card(DECLINES_LATER)
    invoice_id = world.issue(1250)
    world.beat()
    (attempt,) = world.attempts()
    assert (attempt.state, attempt.failure) == ("failed", "declined")
    assert attempt.failure_code == "generic_decline"
    (intent,) = world.objects("payment_intent")
    assert intent["status"] == "canceled"
    assert world.charges_of(invoice_id) == 0


@pytest.mark.parametrize("kind", ["500", "reset_after_commit", "429"])
def test_a_declined_intent_whose_canceling_fails_is_canceled_later(world, kind):
    world.give_card(DECLINES_LATER)
    world.issue(1250)
    world.fault(kind, path=f"{INTENTS}/*/cancel")
    world.beat()
    assert world.attempts()[0].is_live
    world.heal()
    world.settle()
    (attempt,) = world.attempts()
    assert (attempt.state, attempt.failure) == ("failed", "declined")
    assert {one["status"] for one in world.objects("payment_intent")} == {"canceled"}


def test_a_bank_that_asks_an_absent_customer_fails_the_attempt(world):
    world.give_card(ASKS_ALWAYS)
    world.issue(1250)
    world.beat()
    (attempt,) = world.attempts()
    assert (attempt.state, attempt.failure) == ("failed", "needs_authentication")


def test_another_card_is_charged_though_the_one_before_fails_after_it(world):
    world.give_card(DECLINES_LATER)
    invoice_id = world.issue(1250)
    # The attempt is prepared, and its worker is late.
    collect_due()
    collect_organization(organization_id=world.id)
    world.give_card(GOOD)
    world.settle(rounds=2)
    assert [one.state for one in world.attempts()] == [AttemptState.FAILED, AttemptState.SUCCEEDED]
    assert world.receivable(invoice_id).state == "paid"


def test_the_gateway_is_not_called_within_a_transaction(world):
    with pytest.raises(WaitInTransaction), transaction.atomic():
        gateway().intent("pi_1")


def test_an_error_of_the_look_up_is_no_outcome(world):
    world.give_card()
    world.issue(1250)
    world.fault("reset_after_commit", path=INTENTS)
    world.beat()
    world.fault("500", path=f"{INTENTS}*", method="GET", count=None)
    with pytest.raises(OutcomeUnknown):
        gateway().intent_of("pat_1", customer_id="cus_1")
    world.move(hours=2)
    world.beat()
    assert world.attempts()[0].state == AttemptState.UNKNOWN


def test_a_card_that_is_gone_is_a_failure_of_the_customer(world):
    world.give_card()
    invoice_id = world.issue(1250)
    prepared = collect_organization(organization_id=world.id)
    assert prepared is not None
    world.control("POST", f"payment_methods/{prepared.method_id}", declines="lost_card")
    world.work()
    with system_scope():
        attempt = PaymentAttempt.objects.get()
    assert (attempt.state, attempt.failure_code) == ("failed", "lost_card")
    assert world.receivable(invoice_id).open_minor == 1250

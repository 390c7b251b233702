"""The nightly comparison of ledger, receivables and Stripe."""

from datetime import timedelta

import pytest

from billing.choices import Account, EntryKind
from billing.collection.gateway import gateway
from billing.collection.reconciliation import open_differences, reconcile_due, reconcile_money
from billing.collection.watching import what_needs_a_person
from billing.models import JournalEntry, MoneyDifference, MoneyReconciliation, Posting
from billing.receivables.services import record_payment
from console.base.common.tenancy import organization_scope, system_scope
from console.incidents.choices import IncidentKind
from console.incidents.models import Incident
from console.incidents.services.sweeping import sweep_incidents
from tests.billing.collection.test_refunds import FAILS_LATER, ask


@pytest.fixture
def paid(world):
    """An organization that paid an invoice by card, some time ago."""
    world.give_card()
    world.invoice = world.issue(1250)
    world.settle()
    return world


def differences():
    with system_scope():
        rows = MoneyDifference.objects.filter(ended_at=None).order_by("kind", "subject")
        return [(row.kind, row.subject, row.ours_minor, row.theirs_minor) for row in rows]


def enter_payment(world, external_id, amount_minor):
    with organization_scope(world.id):
        record_payment(
            organization_id=world.id,
            method="card",
            amount_minor=amount_minor,
            currency="USD",
            external_id=external_id,
            received_at=world.clock.now,
            by="tests",
        )


def charge_by_hand(world, amount_minor=700):
    with organization_scope(world.id):
        account = world.attempts()[0]
    return gateway().create_intent(
        key="by hand",
        amount_minor=amount_minor,
        currency="USD",
        customer_id=account.customer_id,
        method_id=account.method_id,
        description="by hand",
        metadata={},
    )


def test_what_agrees_is_clean(paid):
    run = reconcile_money()
    assert (run.differences, run.reason) == (0, "")
    assert run.compared == 2
    assert differences() == []


def test_a_charge_that_is_not_entered_is_shown_until_it_is(paid):
    intent = charge_by_hand(paid)
    paid.settle()
    reconcile_money()
    expected = [("payment_unknown", intent.id, None, 700)]
    assert differences() == expected
    # It stays the same difference, however long ago it was.
    paid.move(days=30)
    reconcile_money()
    assert differences() == expected
    enter_payment(paid, intent.id, 700)
    reconcile_money()
    assert differences() == []
    with system_scope():
        assert MoneyDifference.objects.get().ended_at is not None


def test_a_payment_that_stripe_does_not_have_is_shown(paid):
    enter_payment(paid, "pi_invented", 300)
    paid.move(hours=1)
    reconcile_money()
    assert differences() == [("payment_absent", "pi_invented", 300, None)]


def test_another_amount_is_shown(paid):
    intent = charge_by_hand(paid)
    enter_payment(paid, intent.id, 699)
    paid.move(hours=1)
    reconcile_money()
    assert differences() == [("amount_differs", intent.id, 699, 700)]


def test_a_refund_that_failed_after_it_had_succeeded_is_shown(world):
    world.give_card(FAILS_LATER)
    world.issue(1250)
    world.beat()
    ask(world, 250)
    world.work()
    world.settle()
    reconcile_money()
    assert [kind for kind, *_ in differences()] == ["refund_absent"]


def test_a_ledger_that_is_not_the_sum_of_the_rows_is_shown(paid):
    amounts = {Account.RECEIVABLE: 5, Account.CARD_CLEARING: 2, Account.REVENUE: -7}
    with organization_scope(paid.id):
        entry = JournalEntry.objects.create(
            organization_id=paid.id,
            kind=EntryKind.PAYMENT,
            source_id="pay_invented",
            currency="USD",
            posting_count=len(amounts),
        )
        for account, amount in amounts.items():
            Posting.objects.create(
                organization_id=paid.id, entry=entry, account=account, amount_minor=amount
            )
    reconcile_money()
    assert differences() == [
        ("clearing_differs", "USD", 1252, 1250),
        ("ledger_differs", f"{paid.id}:USD", 5, 0),
    ]


def test_what_is_on_its_way_is_no_difference(paid):
    charge_by_hand(paid)
    reconcile_money()
    assert differences() == []


def test_it_is_done_once_a_night_and_again_until_stripe_answers(paid):
    paid.clock.now = paid.clock.now.replace(hour=1, minute=59)
    paid.set_clock()
    assert not reconcile_due()
    paid.move(minutes=5)
    paid.fault("500", count=None)
    assert not reconcile_due()
    with system_scope():
        assert MoneyReconciliation.objects.get().reason
    paid.heal()
    assert reconcile_due()
    assert not reconcile_due()
    with system_scope():
        assert MoneyReconciliation.objects.get().reason == ""
    paid.move(days=1)
    assert reconcile_due()


def test_a_difference_opens_an_incident_that_staff_see(paid):
    charge_by_hand(paid)
    paid.settle()
    reconcile_money()
    with system_scope():
        assert what_needs_a_person(paid.clock.now) == (1, "")
        assert open_differences() == {"payment_unknown": 1}
    sweep_incidents()
    with system_scope():
        incident = Incident.objects.get(kind=IncidentKind.MONEY_DIFFERS)
    assert incident.organization_id is None
    assert incident.title == "Money does not reconcile"


def test_a_standstill_is_named(paid):
    with system_scope():
        assert what_needs_a_person(paid.clock.now) == (0, "")
        later = paid.clock.now + timedelta(hours=4)
        assert "Stripe cannot be asked" in what_needs_a_person(later)[1]

"""No customer keeps an unpaid invoice out of the calendar, and what is open again is a debt."""

from datetime import timedelta

import pytest
from django.core import mail

from billing.choices import FailureKind
from billing.collection.attempts import AUTHENTICATES_WITHIN
from billing.collection.collecting import collect_due
from billing.collection.dunning import note_failure
from billing.collection.tasks import catch_up_events, sweep_collection
from billing.models import Dunning, Payment, UnpaidInvoice
from billing.receivables.services import (
    close_dispute,
    record_dispute,
    refund_payment,
)
from console.base.accounts.models import Organization
from console.base.common.tenancy import organization_scope
from tests.billing.collection.world import ASKS_ALWAYS, DECLINES_LATER, GOOD, transfer
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem


def pay(client, invoice_id):
    return client.request("POST", f"/invoices/{invoice_id}/pay", {})


@pytest.fixture
def client(world, api):
    return api()


def stage(world):
    with organization_scope(world.id):
        row = Dunning.objects.filter(pk=world.id).first()
    return row.stage if row else "paid"


def unpaid(world, invoice_id):
    with organization_scope(world.id):
        return UnpaidInvoice.objects.filter(pk=invoice_id, ended_at=None).first()


def beat(world):
    """What the scheduler and the workers do in a minute."""
    catch_up_events()
    world.beat()
    world.deliver()
    world.work()


def live_under_attack(world, client, days, invoices, minutes=8):
    """Lets days pass in which the customer asks to pay each invoice as often as they can."""
    end = world.clock.now + timedelta(days=days)
    while world.clock.now < end:
        world.move(minutes=minutes)
        # Before the scheduler, and behind it.
        for invoice_id in invoices:
            pay(client, invoice_id)
        beat(world)
        for invoice_id in invoices:
            pay(client, invoice_id)


class TestAttackOnTheCalendar:
    def test_a_payment_that_nobody_authenticates_is_a_failure(self, world, client):
        world.give_card(ASKS_ALWAYS)
        invoice_id = world.issue(1250)
        began = world.clock.now
        assert pay(client, invoice_id).json()["state"] == "requires_action"
        beat(world)
        assert stage(world) == "paid"
        world.move(minutes=16)
        beat(world)
        row = unpaid(world, invoice_id)
        assert (stage(world), row.failure) == ("unpaid", "needs_authentication")
        assert row.since - began <= AUTHENTICATES_WITHIN + timedelta(minutes=1)
        assert [message.subject for message in mail.outbox] == ["$12.50 could not be paid"]

    def test_paying_again_and_again_does_not_keep_the_service_from_charging(self, world, client):
        world.give_card(ASKS_ALWAYS)
        invoice_id = world.issue(1250)
        began = world.clock.now
        live_under_attack(world, client, 0.04, [invoice_id])
        since = unpaid(world, invoice_id).since
        assert since - began < timedelta(hours=1)
        # The attack goes on around each day of the calendar.
        for day, count in ((1, 1), (3, 2), (7, 3)):
            world.clock.now = since + timedelta(days=day, minutes=-12)
            world.set_clock()
            live_under_attack(world, client, 0.04, [invoice_id])
            ours = [one for one in world.attempts() if one.origin == "collection"]
            assert len(ours) == count
        for _ in range(8):
            world.move(days=1)
            live_under_attack(world, client, 0.01, [invoice_id])
        assert unpaid(world, invoice_id).since == since
        assert stage(world) == "suspended"
        subjects = world.subjects()
        assert subjects.count("$12.50 could not be paid") == 4
        assert subjects[-1].startswith("Your clusters refuse traffic")

    def test_paying_one_invoice_does_not_keep_another_one_from_being_charged(self, world, client):
        world.give_card(ASKS_ALWAYS)
        first = world.issue(1250)
        pay(client, first)
        second = world.issue(700)
        live_under_attack(world, client, 0.1, [first])
        assert unpaid(world, first) is not None
        assert unpaid(world, second) is not None

    def test_what_a_customer_keeps_away_for_a_day_is_unpaid(self, world, client):
        """Should an attempt of theirs stay live for whatever reason, as while Stripe is away."""
        world.give_card(GOOD)
        invoice_id = world.issue(1250)
        world.fault("500", path="/v1/payment_intents*", count=None)
        pay(client, invoice_id)
        for _ in range(23):
            world.move(hours=1)
            beat(world)
        assert (stage(world), world.attempts()[0].is_live) == ("paid", True)
        for _ in range(2):
            world.move(hours=1)
            beat(world)
        assert (stage(world), unpaid(world, invoice_id).failures) == ("unpaid", 1)

    def test_a_customers_failures_move_no_day_of_the_calendar(self, world, client):
        world.give_card(DECLINES_LATER)
        invoice_id = world.issue(1250)
        beat(world)
        before = unpaid(world, invoice_id)
        for _ in range(3):
            world.move(hours=5)
            assert pay(client, invoice_id).json()["failure"] == "declined"
        after = unpaid(world, invoice_id)
        assert (after.since, after.next_try_at) == (before.since, before.next_try_at)
        assert after.failures == 1
        assert len(mail.outbox) == 1


class TestPaidInAnotherWay:
    def test_a_payment_that_waits_for_its_customer_is_canceled(self, world, client):
        world.give_card(ASKS_ALWAYS)
        invoice_id = world.issue(1250)
        url = pay(client, invoice_id).json()["url"]
        transfer(world)
        world.work()
        (attempt,) = world.attempts()
        assert (attempt.state, attempt.failure) == ("canceled", "")
        (intent,) = world.objects("payment_intent")
        assert intent["status"] == "canceled"
        # Approving it on the bank's page charges nothing any more.
        with pytest.raises(AssertionError):
            world.authenticate(url)
        world.settle()
        assert world.charges_of(invoice_id) == 0
        assert (stage(world), unpaid(world, invoice_id)) == ("paid", None)

    def test_of_what_is_paid_in_part_the_rest_is_charged(self, world, client):
        world.give_card(ASKS_ALWAYS)
        invoice_id = world.issue(1250)
        pay(client, invoice_id)
        transfer(world, 1000)
        world.work()
        assert pay(client, invoice_id).json()["amount_minor"] == 250

    def test_what_was_never_made_is_not_made_any_more(self, world):
        world.give_card(GOOD)
        invoice_id = world.issue(1250)
        world.fault("reset", path="/v1/payment_intents", count=3)
        collect_due()
        world.work()
        assert world.attempts()[0].state == "unknown"
        transfer(world)
        world.heal()
        world.settle()
        assert world.attempts()[0].state == "canceled"
        assert world.charges_of(invoice_id) == 0

    def test_the_failure_of_what_is_paid_begins_no_calendar(self, world):
        world.give_card(DECLINES_LATER)
        invoice_id = world.issue(1250)
        transfer(world)
        with organization_scope(world.id):
            note_failure(
                organization_id=world.id, invoice_ids=[invoice_id], failure=FailureKind.DECLINED
            )
        assert (stage(world), unpaid(world, invoice_id)) == ("paid", None)


def lose_dispute(world, amount_minor=1250):
    with organization_scope(world.id):
        payment = Payment.objects.get()
        record_dispute(
            payment_id=payment.pk,
            amount_minor=amount_minor,
            external_id="dp_1",
            at=world.clock.now,
        )
        close_dispute(external_id="dp_1", won=False, at=world.clock.now)


def refund(world, amount_minor=1250):
    with organization_scope(world.id):
        refund_payment(
            payment_id=Payment.objects.get().pk,
            amount_minor=amount_minor,
            external_id="re_1",
            by="tests",
            reason="asked for",
        )


class TestOpenAgain:
    @pytest.mark.parametrize("open_again", [lose_dispute, refund])
    def test_it_is_unpaid_from_that_day_and_only_the_customer_pays_it(
        self, world, client, open_again
    ):
        world.give_card(GOOD)
        invoice_id = world.issue(1250)
        beat(world)
        world.live_through(40, step_hours=240)
        open_again(world)
        beat(world)
        account = client.request("GET", "/account").json()
        assert (account["stage"], account["unpaid_minor"]) == ("unpaid", 1250)
        assert (account["failure"], account["next_charge_at"]) == ("reopened", None)
        assert unpaid(world, invoice_id).since == world.clock.now
        (message,) = mail.outbox
        assert message.subject == "$12.50 is overdue"
        assert "refunded, or taken back by its bank" in message.body
        assert "again on" not in message.body
        world.live_through(15)
        assert stage(world) == "suspended"
        # Another card is not charged for it either, unless the customer says so.
        world.give_card(GOOD)
        beat(world)
        assert world.charges_of(invoice_id) == 1
        assert pay(client, invoice_id).json()["state"] == "succeeded"
        assert (stage(world), world.charges_of(invoice_id)) == ("paid", 2)

    def test_an_open_dispute_is_no_debt_yet(self, world):
        world.give_card(GOOD)
        invoice_id = world.issue(1250)
        beat(world)
        with organization_scope(world.id):
            record_dispute(
                payment_id=Payment.objects.get().pk,
                amount_minor=1250,
                external_id="dp_1",
                at=world.clock.now,
            )
        beat(world)
        assert (stage(world), unpaid(world, invoice_id)) == ("paid", None)

    def test_less_than_a_card_can_be_charged_waits_for_more(self, world):
        world.give_card(GOOD)
        small = world.issue(1250)
        beat(world)
        refund(world, 30)
        beat(world)
        assert (stage(world), unpaid(world, small)) == ("paid", None)
        world.give_card(DECLINES_LATER)
        world.issue(1000)
        beat(world)
        beat(world)
        assert unpaid(world, small) is not None

    def test_a_transfer_that_is_given_back_is_a_debt_from_then(self, world, collector):
        collector("transfer", bank_account=("IBAN DE02",), payment_terms_days=14)
        invoice_id = world.issue(1250)
        transfer(world)
        world.clock.now += timedelta(days=60)
        refund(world)
        collect_due()
        row = unpaid(world, invoice_id)
        assert (row.failure, row.since) == ("reopened", world.clock.now)
        sweep_collection()
        assert stage(world) == "unpaid"


class TestClosedOrganization:
    def test_it_pays_what_it_owes(self, world, tenant):
        world.give_card(DECLINES_LATER)
        invoice_id = world.issue(1250)
        beat(world)
        owner = signed_in(tenant.owner)
        assert owner.post("/organizations/current:close", {"name": "Acme"}).status_code == 200
        assert owner.post("/payment-method/setup", {}).status_code == 200
        assert owner.post("/payment-method/portal", {}).status_code == 200
        assert owner.patch("/billing-details", {"legal_name": "Acme"}).status_code == 200
        world.give_card(GOOD)
        assert world.receivable(invoice_id).state == "paid"
        assert_problem(owner.post(f"/invoices/{invoice_id}/pay", {}), 409, "nothing_open")
        assert_problem(owner.post("/projects", {"name": "x"}), 403, "organization_closed")
        with organization_scope(world.id):
            assert Organization.objects.get().closed_at is not None

"""A card opens no further organization while it owes, and is served up to a limit until it pays."""

from importlib import import_module
from io import StringIO

import pytest
from django.core import mail
from django.core.management import call_command
from django.db import connection

from billing.allowances.enforcement import enforce_allowances
from billing.allowances.notices import send_trial_mail
from billing.allowances.refusals import SMALL_DEBTS_MAX
from billing.catalog import GIB
from billing.collection.advances import judge_payers
from billing.models import Payer, PayerOrganization, Payment, PaymentAttempt, TrialNotice
from billing.receivables.services import close_dispute, record_dispute
from console.base.accounts.models import Organization, TrafficLimit
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing.collection.world import (
    ASKS_ALWAYS,
    DECLINES_LATER,
    GOOD,
    World,
    transfer,
)
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import make_tenant
from tests.metering.console.world import Used, use_minute

UPGRADE = import_module("billing.migrations.0018_payers_of_attempts")
OTHER_CARD = "5555555555554444"
# What 1,000 GiB in cost beyond the free ones: 990 × $0.04.
TERABYTE, TERABYTE_MINOR = 1_000 * GIB, 3_960


@pytest.fixture
def other(other_tenant, world):
    """Another organization, of which nobody in the first one is a member."""
    return World(world.server, world.clock, other_tenant.id)


def beat(world):
    """What the scheduler and the workers do in half a minute."""
    enforce_allowances()
    judge_payers()
    world.beat()
    world.deliver()
    world.work()


def has_payer(world):
    with organization_scope(world.id):
        return PayerOrganization.objects.filter(organization_id=world.id, until=None).exists()


def use(world, quantity):
    at = world.clock.now.replace(second=0, microsecond=0)
    use_minute(Used(world.id, f"cl_{world.id[4:]}", "ingress_bytes", quantity), at)


def reasons(world):
    """Source → why the organization's traffic is refused."""
    with organization_scope(world.id):
        return dict(TrafficLimit.objects.values_list("source", "reason"))


def charged(world):
    """The amounts of the attempts, the least first."""
    return sorted(one.amount_minor for one in world.attempts())


def payment_method(tenant):
    return ApiClient(tenant.key).request("GET", "/payment-method").json()


def open_dispute(world, name):
    with organization_scope(world.id):
        payment = Payment.objects.filter(disputes=None).earliest("created_at")
        record_dispute(
            payment_id=payment.pk,
            amount_minor=payment.amount_minor,
            external_id=name,
            at=world.clock.now,
        )


def decide_dispute(world, name, *, won):
    with organization_scope(world.id):
        close_dispute(external_id=name, won=won, at=world.clock.now)


class TestDebts:
    def test_a_card_that_owes_opens_no_further_organization_until_it_pays(
        self, world, other, other_tenant
    ):
        world.give_card(DECLINES_LATER)
        invoice_id = world.issue(1250)
        beat(world)
        other.give_card(DECLINES_LATER)
        assert (has_payer(world), has_payer(other)) == (True, False)
        shown = payment_method(other_tenant)
        assert (shown["refusal"], shown["card"]["last4"]) == ("unpaid", "0341")
        # Of the other organization no more is said.
        with organization_scope(world.id):
            names = {world.id, invoice_id, Organization.objects.get(pk=world.id).name}
        assert not any(name in str(shown) for name in names)
        beat(world)
        assert not has_payer(other)
        transfer(world)
        beat(world)
        assert has_payer(other)
        assert payment_method(other_tenant)["refusal"] == ""

    def test_what_is_left_of_its_trial_holds_and_then_the_refusal_says_so(self, world, other):
        world.give_card(DECLINES_LATER)
        world.issue(1250)
        beat(world)
        beat(world)
        other.give_card(DECLINES_LATER)
        use(other, GIB)
        beat(world)
        assert reasons(other) == {}
        use(other, 10 * GIB)
        beat(world)
        assert "pays for no further organization" in reasons(other)["allowance"]
        with organization_scope(other.id):
            notice = TrialNotice.objects.get(kind="used_up")
        send_trial_mail(organization_id=other.id, notice_id=notice.pk)
        assert "pays for no further organization" in mail.outbox[-1].body
        other.give_card(OTHER_CARD)
        assert (has_payer(other), reasons(other)) == (True, {})

    def test_removing_the_card_before_the_invoice_comes_changes_nothing(self, world, other):
        world.give_card(DECLINES_LATER)
        world.move(days=2)
        world.give_card(GOOD)
        with system_scope():
            first, second = Payer.objects.order_by("created_at")
        assert first.fingerprint != second.fingerprint
        # The invoice of a month in which the first card paid is charged to the second.
        world.give_card(DECLINES_LATER)
        world.issue(1250)
        beat(world)
        world.give_card(ASKS_ALWAYS)
        beat(world)
        other.give_card(DECLINES_LATER)
        assert not has_payer(other)

    def test_an_organization_that_owes_takes_another_card(self, world):
        world.give_card(DECLINES_LATER)
        invoice_id = world.issue(1250)
        beat(world)
        world.give_card(GOOD)
        assert has_payer(world)
        beat(world)
        assert world.receivable(invoice_id).state == "paid"

    def test_small_debts_in_many_organizations_are_a_debt(self, world, other):
        debtors = [World(world.server, world.clock, make_tenant(f"Small{n}").id) for n in range(9)]
        for debtor in [world, *debtors]:
            debtor.give_card(GOOD)
            debtor.issue(49)
        assert len(debtors) + 1 == SMALL_DEBTS_MAX
        other.give_card(GOOD)
        assert not has_payer(other)
        transfer(world, 49)
        beat(world)
        assert has_payer(other)


class TestDisputes:
    def test_an_open_one_opens_no_further_organization_until_it_is_won(
        self, world, other, other_tenant
    ):
        world.give_card(GOOD)
        world.issue(1250)
        beat(world)
        open_dispute(world, "dp_1")
        other.give_card(GOOD)
        assert not has_payer(other)
        assert payment_method(other_tenant)["refusal"] == "disputed"
        beat(world)
        assert reasons(world) == {}
        decide_dispute(world, "dp_1", won=True)
        beat(world)
        assert has_payer(other)

    def test_the_second_of_a_year_refuses_traffic_until_it_is_decided(self, world, other):
        world.give_card(GOOD)
        other.give_card(GOOD)
        for month in (1, 2):
            world.issue(1250)
            beat(world)
            open_dispute(world, f"dp_{month}")
            beat(world)
            assert ("payer" in reasons(world)) == (month == 2)
        # The card pays for both.
        assert "disputed at the bank" in reasons(other)["payer"]
        assert mail.outbox[-1].subject == "Your clusters refuse traffic"
        # Another card of the organization changes nothing.
        world.give_card(OTHER_CARD)
        beat(world)
        assert "payer" in reasons(world)
        decide_dispute(world, "dp_2", won=True)
        beat(world)
        assert (reasons(world), reasons(other)) == ({}, {})

    def test_after_a_year_it_counts_no_more(self, world):
        world.give_card(GOOD)
        for name in ("dp_1", "dp_2"):
            world.issue(1250)
            beat(world)
            open_dispute(world, name)
            world.move(days=200)
            beat(world)
        beat(world)
        assert reasons(world) == {}

    def test_the_operator_lifts_it(self, world):
        world.give_card(GOOD)
        for name in ("dp_1", "dp_2"):
            world.issue(1250)
            beat(world)
            open_dispute(world, name)
        beat(world)
        assert "payer" in reasons(world)
        out = StringIO()
        call_command("payer", organization=world.id, trust="A mistake of the bank.", stdout=out)
        beat(world)
        assert "is trusted" in out.getvalue()
        assert reasons(world) == {}
        call_command("payer", organization=world.id, distrust="It was none.", stdout=out)
        beat(world)
        assert "payer" in reasons(world)


class TestLimit:
    def test_below_the_half_nothing_is_charged(self, world):
        world.give_card(GOOD)
        use(world, TERABYTE // 2)
        beat(world)
        assert world.attempts() == []

    def test_from_the_half_on_a_card_is_charged_in_advance_and_has_proved_itself(self, world):
        world.give_card(GOOD)
        use(world, TERABYTE)
        beat(world)
        (attempt,) = world.attempts()
        assert (attempt.state, attempt.amount_minor) == ("succeeded", TERABYTE_MINOR)
        (intent,) = world.objects("payment_intent")
        assert intent["description"] == "Payment in advance: it pays the next invoice"
        with organization_scope(world.id):
            assert Payment.objects.get().unapplied_minor == TERABYTE_MINOR
        use(world, 9 * TERABYTE)
        beat(world)
        beat(world)
        assert (len(world.attempts()), reasons(world)) == (1, {})
        assert Payer.objects.get().proved_at is not None
        # It pays the invoice, of which only the rest is charged.
        invoice_id = world.issue(TERABYTE_MINOR + 1000)
        beat(world)
        assert world.receivable(invoice_id).state == "paid"
        assert charged(world) == [1000, TERABYTE_MINOR]

    def test_one_that_declines_is_served_up_to_the_limit(self, world, other, tenant):
        world.give_card(DECLINES_LATER)
        other.give_card(DECLINES_LATER)
        use(world, TERABYTE)
        beat(world)
        assert [one.state for one in world.attempts()] == ["failed"]
        assert mail.outbox[-1].subject == "$39.60 could not be paid in advance"
        assert "before $50.00 are used" in mail.outbox[-1].body
        assert payment_method(tenant)["advance_minor"] == TERABYTE_MINOR
        beat(world)
        assert (len(world.attempts()), reasons(world)) == (1, {})
        # The limit is of all its organizations together.
        use(other, TERABYTE // 2)
        beat(world)
        for one in (world, other):
            assert "Pay in advance" in reasons(one)["payer"]
        third = World(world.server, world.clock, make_tenant("Third").id)
        third.give_card(DECLINES_LATER)
        assert not has_payer(third)
        # Another card is charged at once, and everything works again.
        world.give_card(GOOD)
        beat(world)
        beat(world)
        assert world.attempts()[-1].state == "succeeded"
        assert (reasons(world), reasons(other)) == ({}, {})

    def test_organizations_that_removed_the_card_count(self, world, other):
        world.give_card(DECLINES_LATER)
        other.give_card(DECLINES_LATER)
        use(world, TERABYTE)
        world.remove_card()
        beat(world)
        assert not has_payer(world)
        # Half of the limit is owed already, though the other organization has used nothing.
        use(other, TERABYTE // 2)
        beat(world)
        assert [one.state for one in other.attempts()] == ["failed"]
        beat(world)
        assert "Pay in advance" in reasons(other)["payer"]
        third = World(world.server, world.clock, make_tenant("Third").id)
        third.give_card(DECLINES_LATER)
        assert not has_payer(third)
        # Removing it there too opens nothing.
        other.remove_card()
        beat(world)
        third.give_card(DECLINES_LATER)
        assert not has_payer(third)
        # Who takes a card that pays is served, and owes the other card's limit nothing more.
        other.give_card(GOOD)
        beat(world)
        beat(world)
        assert reasons(other) == {}

    def test_it_is_tried_again_once_a_day_and_four_times_in_all(self, world):
        world.give_card(DECLINES_LATER)
        use(world, TERABYTE)
        counts = []
        for _ in range(6):
            beat(world)
            beat(world)
            counts.append(len(world.attempts()))
            world.move(hours=25)
        assert counts == [1, 2, 3, 4, 4, 4]

    def test_a_bank_that_asks_its_customer_is_answered_by_paying(self, world, tenant):
        client = ApiClient(tenant.key)
        world.give_card(ASKS_ALWAYS)
        use(world, 2 * TERABYTE)
        beat(world)
        beat(world)
        assert "payer" in reasons(world)
        answer = client.request("POST", "/payment-method/advance").json()
        assert (answer["state"], answer["invoice_ids"]) == ("requires_action", [])
        again = client.request("POST", "/payment-method/advance").json()
        assert again["id"] == answer["id"]
        world.authenticate(answer["url"])
        world.deliver()
        world.work()
        # In the moment in which the payment is entered.
        assert reasons(world) == {}
        assert payment_method(tenant)["advance_minor"] is None

    def test_small_charges_prove_no_large_use(self, world):
        world.give_card(GOOD)
        world.issue(100)
        beat(world)
        use(world, TERABYTE)
        beat(world)
        assert charged(world) == [100, TERABYTE_MINOR]

    def test_what_was_paid_and_given_back_proves_nothing(self, world):
        world.give_card(GOOD)
        world.issue(2_600)
        world.beat()
        open_dispute(world, "dp_1")
        use(world, TERABYTE)
        beat(world)
        assert charged(world) == [2_600, TERABYTE_MINOR]

    def test_an_invoice_that_is_open_is_paid_first(self, world, tenant):
        client = ApiClient(tenant.key)
        assert_problem(client.request("POST", "/payment-method/advance"), 409, "no_payment_method")
        world.give_card(DECLINES_LATER)
        assert_problem(client.request("POST", "/payment-method/advance"), 409, "below_card_minimum")
        world.issue(1250)
        use(world, TERABYTE)
        assert_problem(client.request("POST", "/payment-method/advance"), 409, "nothing_open")

    def test_without_a_limit_nobody_is_held_up(self, world, collector):
        collector("stripe", unproved_payer_limit_minor=0)
        world.give_card(DECLINES_LATER)
        use(world, 9 * TERABYTE)
        beat(world)
        assert (world.attempts(), reasons(world)) == ([], {})

    def test_where_no_cards_are_charged_it_is_lifted(self, world, collector):
        world.give_card(DECLINES_LATER)
        use(world, 2 * TERABYTE)
        beat(world)
        beat(world)
        assert "payer" in reasons(world)
        collector("none")
        judge_payers()
        assert reasons(world) == {}

    def test_charges_of_an_earlier_release_prove_the_card(self, world):
        world.give_card(GOOD)
        world.issue(2_600)
        world.beat()
        with system_scope():
            PaymentAttempt.objects.update(payer=None)
        judge_payers()
        assert Payer.objects.get().proved_at is None
        with connection.cursor() as cursor:
            for statement in UPGRADE.PAYERS_OF_ATTEMPTS:
                cursor.execute(statement)
        judge_payers()
        assert Payer.objects.get().proved_at == world.clock.now

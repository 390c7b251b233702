"""Random courses of charging: whatever fails, and whatever webhooks do in whatever order, each
invoice is charged once, and the ledger's paid amount is what the fake charged less what it gave
back."""

import contextlib
import dataclasses
import shutil
import tempfile
from pathlib import Path

import pytest
import stripe
from celery import current_app
from django.conf import settings as django_settings
from django.db import transaction
from django.utils import timezone
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from billing.collection import gateway as gateway_module
from billing.collection.collecting import collect_due
from billing.collection.reconciliation import reconcile_money
from billing.collection.refunds import request_refund
from billing.collection.tasks import catch_up_events, sweep_collection
from billing.errors import RefundTooLarge
from billing.models import (
    MoneyDifference,
    Payment,
    PaymentAttempt,
    RefundAttempt,
    StripeEvent,
)
from billing.models.collection import LIVE_STATES
from billing.receivables.services import refundable_minor
from console.base.accounts.models import Organization
from console.base.common import rates
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope
from console.programs.stripe_fake.keys import SECRET_KEY, WEBHOOK_SECRET
from console.programs.stripe_fake.server import FakeServer
from tests.billing.collection.conftest import AT
from tests.billing.collection.world import (
    ASKS_ALWAYS,
    DECLINES_LATER,
    GOOD,
    World,
    caught_up,
)
from tests.billing.receivables import ledgers

FAULTS = ("reset", "reset_after_commit", "500", "500_after_commit", "500_kept", "409", "429")
PATHS = ("/v1/payment_intents", "/v1/payment_intents/*", "/v1/refunds*", "/v1/events", "/v1/*")
# An example takes seconds, so that one that fails is shown as it is, and not made smaller.
ONE_BY_ONE = settings(phases=(Phase.explicit, Phase.reuse, Phase.generate), deadline=None)
FLAWS = ("duplicate", "reorder", "drop", "hold", "forge", "stale")


class Clock:
    """The service's clock."""

    now = AT


class Charging(RuleBasedStateMachine):
    """One organization with a card, its invoices, and everything that can go wrong."""

    def __init__(self):
        super().__init__()
        self.block = transaction.atomic()
        self.block._from_testcase = True  # type: ignore[attr-defined] # as Django marks its own
        self.block.__enter__()
        self.real_now, self.clock = timezone.now, Clock()
        timezone.now = lambda: self.clock.now
        self.delays = stripe.HTTPClient.INITIAL_DELAY, stripe.HTTPClient.MAX_DELAY
        stripe.HTTPClient.INITIAL_DELAY = stripe.HTTPClient.MAX_DELAY = 0
        self.documents = Path(tempfile.mkdtemp(prefix="freshet-charging-"))
        self.server = FakeServer()
        self.server.start()
        self.known = config()
        billing = dataclasses.replace(
            self.known.billing,
            documents=str(self.documents),
            collector="stripe",
            stripe_api_key=SECRET_KEY,
            stripe_webhook_secret=WEBHOOK_SECRET,
            stripe_api_base=self.server.base,
        )
        django_settings.FRESHET = dataclasses.replace(self.known, billing=billing)
        rates.forget_rates()
        gateway_module._answers.cache_clear()
        current_app.loader.import_default_modules()
        organization = Organization(name="Machine")
        with organization_scope(organization.pk):
            organization.save(force_insert=True)
        self.world = World(self.server, self.clock, organization.pk)
        caught_up()
        self.world.give_card(GOOD)
        self.invoices, self.refunds = [], 0

    def teardown(self):
        """Whatever happened: once all is heard of, everything is paid, and nothing is stuck."""
        try:
            self.come_to_the_end()
        finally:
            self.server.stop()
            django_settings.FRESHET = self.known
            stripe.HTTPClient.INITIAL_DELAY, stripe.HTTPClient.MAX_DELAY = self.delays
            timezone.now = self.real_now
            transaction.set_rollback(True)
            self.block.__exit__(None, None, None)
            shutil.rmtree(self.documents)

    @rule(amount=st.sampled_from([20, 49, 50, 1250]))
    def issue(self, amount):
        if len(self.invoices) < 5:
            self.invoices.append(self.world.issue(amount))

    @rule(number=st.sampled_from([GOOD, DECLINES_LATER, ASKS_ALWAYS]))
    def change_card(self, number):
        self.world.heal()
        self.world.give_card(number)

    @rule(kind=st.sampled_from(FAULTS), path=st.sampled_from(PATHS), count=st.integers(1, 5))
    def break_calls(self, kind, path, count):
        self.world.fault(kind, path=path, count=count)

    @rule(kind=st.sampled_from(FLAWS))
    def break_webhooks(self, kind):
        self.world.webhook_fault(kind)

    @rule()
    def heal(self):
        self.world.heal()

    @rule()
    def collect(self):
        # As the task, which is started again a minute later.
        with contextlib.suppress(gateway_module.GatewayError):
            collect_due()

    @rule()
    def work(self):
        self.world.work()

    @rule()
    def sweep(self):
        sweep_collection()

    @rule()
    def deliver(self):
        self.world.deliver()

    @rule()
    def release(self):
        self.world.control("POST", "deliveries/release")

    @rule()
    def catch_up(self):
        catch_up_events()

    @rule(hours=st.sampled_from([0.02, 0.5, 7, 30]))
    def wait(self, hours):
        self.world.move(hours=hours)

    @precondition(lambda self: self.invoices)
    @rule(part=st.sampled_from([1, 7]))
    def refund(self, part):
        with organization_scope(self.world.id):
            payment = Payment.objects.order_by("created_at", "pk").first()
            if payment is None:
                return
            amount = refundable_minor(payment) // part
            if not amount:
                return
            self.refunds += 1
            # More than what is left may be asked for already.
            with contextlib.suppress(RefundTooLarge):
                request_refund(
                    payment=payment,
                    amount_minor=amount,
                    external_id=f"ticket {self.refunds}",
                    by="tests",
                    reason="an outage",
                    is_goodwill=True,
                )

    @invariant()
    def each_invoice_is_charged_at_most_once(self):
        if not hasattr(self, "invoices"):
            return
        for invoice_id in self.invoices:
            assert self.world.charges_of(invoice_id) <= 1

    def settle_until(self, condition):
        """Lets hours pass until a condition holds; Stripe keeps an error for the key for a day."""
        for _ in range(30):
            self.world.settle(rounds=1)
            if condition():
                return
        with system_scope():
            rows = (
                [(one.pk, one.state, one.last_error) for one in self.world.attempts()],
                list(StripeEvent.objects.filter(handled_at=None).values_list("type", "last_error")),
                list(RefundAttempt.objects.values_list("state", "last_error")),
                [(one, self.world.receivable(one).open_minor) for one in self.invoices],
            )
        message = f"it does not come to an end: {rows}"
        raise AssertionError(message)

    def is_at_rest(self):
        with system_scope():
            live = PaymentAttempt.objects.filter(state__in=LIVE_STATES)
            asked = RefundAttempt.objects.filter(check_at__isnull=False)
            unheard = StripeEvent.objects.filter(handled_at=None)
            return not (live.exists() or asked.exists() or unheard.exists())

    def come_to_the_end(self):
        world = self.world
        world.heal()
        world.control("POST", "deliveries/release")
        world.give_card(GOOD)
        # What is left may be too small for a card, and wait for the next invoice.
        self.settle_until(self.is_at_rest)
        self.invoices.append(world.issue(1250))
        self.settle_until(
            lambda: (
                self.is_at_rest()
                and all(world.receivable(one).state == "paid" for one in self.invoices)
            )
        )
        for invoice_id in self.invoices:
            assert world.charges_of(invoice_id) == 1
            assert world.receivable(invoice_id).state == "paid"
        charged = sum(one["amount"] for one in world.objects("charge") if one["paid"])
        given_back = sum(
            one["amount"] for one in world.objects("refund") if one["status"] == "succeeded"
        )
        assert ledgers.accounts(world.id).get("card_clearing", 0) == charged - given_back
        ledgers.check_now()
        ledgers.require_ledger_agrees(world.id)
        world.move(hours=1)
        assert reconcile_money().finished_at is not None
        with system_scope():
            assert list(MoneyDifference.objects.filter(ended_at=None)) == []


@pytest.mark.django_db
def test_each_invoice_is_charged_once_whatever_happens():
    run_state_machine_as_test(
        Charging, settings=settings(ONE_BY_ONE, max_examples=3, stateful_step_count=12)
    )


@pytest.mark.full
@pytest.mark.django_db
def test_each_invoice_is_charged_once_whatever_happens_for_long():
    run_state_machine_as_test(
        Charging, settings=settings(ONE_BY_ONE, max_examples=30, stateful_step_count=40)
    )

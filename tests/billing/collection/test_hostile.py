"""Random courses of hostile customers: whatever they do, each debt is paid or followed up.

After each step: one live charge for an invoice, never more paid than is owed, postings that sum to
0, a calendar for every debt, what is free given once, and no traffic for who does not pay.
"""

import contextlib
from datetime import timedelta

import httpx
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from billing.allowances.enforcement import enforce_allowances
from billing.catalog import GIB
from billing.choices import AllowanceKind, DunningStage, InvoiceKind
from billing.collection.advances import judge_payers, owed_by
from billing.collection.reconciliation import reconcile_money
from billing.collection.refunds import request_refund
from billing.errors import RefundTooLarge
from billing.models import (
    AllowanceShare,
    CardAccount,
    Dunning,
    Invoice,
    MissingInvoice,
    MoneyDifference,
    Payer,
    PayerOrganization,
    Payment,
    PaymentAttempt,
    UnpaidInvoice,
)
from billing.models.collection import LIVE_STATES
from billing.receivables.services import payments_of, record_payment, refundable_minor
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing.collection.hostile import INGRESS, LIMIT, Service
from tests.billing.collection.world import ASKS_ALWAYS, DECLINES_LATER, DISPUTED, GOOD
from tests.billing.receivables import ledgers

# An example takes seconds, so that one that fails is shown as it is, and not made smaller.
ONE_BY_ONE = settings(phases=(Phase.explicit, Phase.reuse, Phase.generate), deadline=None)
CARDS = (GOOD, "5555555555554444", DECLINES_LATER, ASKS_ALWAYS, DISPUTED)
FAULTS = ("reset_after_commit", "500", "500_kept", "409", "429")
FLAWS = ("drop", "duplicate", "hold", "reorder")
CUSTOMERS_MAX = 3
FREE = 10 * GIB
# With a trial alone, what one minute uses slips past its end.
MINUTE_OF_TRIAL, SIZES = 4 * GIB, (4 * GIB, 22 * GIB, 300 * GIB)
MINIMUM = 50
# From the day on which it was due: a day that customers can keep it away, the calendar, its notice.
SERVED_FOR = timedelta(days=1 + 14 + 3 + 2)
DETAILS = (
    {"country": "DE", "vat_id": "", "address": ["Weg 1", "10115 Berlin"]},
    {"country": "DE", "vat_id": "DE123456788"},
    {"country": "FR", "vat_id": ""},
    {"country": "US", "legal_name": "Somebody else"},
    {"country": "", "vat_id": "DE1"},
)
which = st.integers(0, CUSTOMERS_MAX - 1)


class Hostile(RuleBasedStateMachine):
    """Customers of one service, who may well be one person."""

    def __init__(self):
        super().__init__()
        self.service = Service()
        self.requests = 0
        self.first_open = {}

    def teardown(self):
        """Once everybody pays, everything is paid, and the comparison with Stripe is clean."""
        try:
            self.come_to_the_end()
        finally:
            self.service.close()

    def customer(self, number):
        return self.service.customers[number % len(self.service.customers)]

    def invoice(self, customer, number):
        """One of the customer's invoices, by its number from the newest on; None where none is."""
        invoices = list(ledgers.states(customer.id))
        return invoices[-1 - number % len(invoices)] if invoices else None

    def request(self):
        self.requests += 1
        return f"request {self.requests}"

    @initialize(number=st.sampled_from((DECLINES_LATER, ASKS_ALWAYS, GOOD)))
    def begin(self, number):
        """A first month of traffic by a card, so that there is something to pay."""
        customer = self.customer(0)
        customer.world.give_card(number)
        self.service.use(customer, SIZES[-1])
        self.service.end_month()

    @rule(mailbox=st.sampled_from(("ada", "bea")))
    def open_another(self, mailbox):
        if len(self.service.customers) < CUSTOMERS_MAX:
            self.service.open_customer(mailbox)

    @rule(who=which, mailbox=st.sampled_from(("ada", "bea")))
    def open_another_with_the_same_card(self, who, mailbox):
        """A card that owes in one organization opens no other one."""
        customer = self.customer(who)
        if len(self.service.customers) == CUSTOMERS_MAX:
            return
        with organization_scope(customer.id):
            account = CardAccount.objects.filter(pk=customer.id).exclude(method_id="").first()
            if account is None:
                return
            # The card has to be known as the one that is charged, and not only at Stripe.
            owes = (
                PayerOrganization.objects.filter(
                    until=None, payer__fingerprint=account.fingerprint
                ).exists()
                and UnpaidInvoice.objects.filter(ended_at=None).exclude(since=None).exists()
            )
        self.service.heal()
        another = self.service.open_customer(mailbox)
        another.world.give_card(next(one for one in CARDS if one.endswith(account.last4)))
        with organization_scope(another.id):
            given = CardAccount.objects.get(pk=another.id)
            pays = PayerOrganization.objects.filter(until=None).exists()
        assert given.fingerprint == account.fingerprint
        assert not (owes and pays)

    @rule(who=which, number=st.sampled_from(CARDS))
    def give_card(self, who, number):
        self.service.heal()
        self.customer(who).world.give_card(number)

    @rule(who=which)
    def remove_cards(self, who):
        self.service.remove_cards(self.customer(who))

    @rule(who=which, size=st.sampled_from(SIZES))
    def use(self, who, size):
        customer = self.customer(who)
        with organization_scope(customer.id):
            has_card = customer.tenant.organization.payer_links.filter(until=None).exists()
        self.service.use(customer, size if has_card else MINUTE_OF_TRIAL)

    @rule(who=which, number=st.integers(0, 4), with_older=st.booleans())
    def pay(self, who, number, with_older):
        customer = self.customer(who)
        invoice_id = self.invoice(customer, number)
        if invoice_id is None:
            return
        body = {"with_older": with_older}
        answer = customer.request("POST", f"/invoices/{invoice_id}/pay", body)
        assert answer.status_code < 500 or answer.status_code == 503, answer.content
        if answer.status_code == 200 and answer.json()["url"]:
            customer.pages.append(answer.json()["url"])

    @rule(who=which, succeed=st.booleans())
    def answer_the_bank(self, who, succeed):
        customer = self.customer(who)
        if customer.pages:
            httpx.post(customer.pages.pop(), data={"outcome": "succeed" if succeed else "fail"})

    @rule(who=which, number=st.integers(0, 4), part=st.sampled_from((1, 3, 1000)))
    def transfer(self, who, number, part):
        """A part of what is open comes in at the bank, which the operator enters."""
        customer = self.customer(who)
        invoice_id = self.invoice(customer, number)
        if invoice_id is None:
            return
        amount = customer.world.receivable(invoice_id).open_minor // part
        if not amount:
            return
        with organization_scope(customer.id):
            record_payment(
                organization_id=customer.id,
                method="transfer",
                amount_minor=amount,
                currency="USD",
                external_id=self.request(),
                received_at=self.service.clock.now,
                by="tests",
                invoice_ids=[invoice_id],
            )

    @rule(who=which)
    def close(self, who):
        self.service.close_customer(self.customer(who))

    @rule(who=which)
    def reopen(self, who):
        self.service.reopen_customer(self.customer(who))

    @rule(who=which, details=st.sampled_from(DETAILS))
    def change_details(self, who, details):
        answer = self.customer(who).request("PATCH", "/billing-details", details)
        assert answer.status_code < 500, answer.content

    @rule(who=which, part=st.sampled_from((1, 7)), is_goodwill=st.booleans())
    def ask_for_a_refund(self, who, part, is_goodwill):
        customer = self.customer(who)
        with organization_scope(customer.id):
            payment = Payment.objects.filter(method="card").order_by("-created_at", "pk").first()
            if payment is None or not (amount := refundable_minor(payment) // part):
                return
            # More than what is left may be asked for already.
            with contextlib.suppress(RefundTooLarge):
                request_refund(
                    payment=payment,
                    amount_minor=amount,
                    external_id=self.request(),
                    by="tests",
                    reason="asked for",
                    is_goodwill=is_goodwill,
                )

    @rule(number=st.integers(0, 4), won=st.booleans())
    def dispute(self, number, won):
        """Somebody disputes a charge, or a bank decides a dispute."""
        still_open = [one for one in self.service.objects("dispute") if "response" in one["status"]]
        if still_open:
            name = still_open[number % len(still_open)]["id"]
            self.control("POST", f"disputes/{name}/close", won=won)
            return
        disputed = {one["charge"] for one in self.service.objects("dispute")}
        charges = [
            one
            for one in self.service.objects("charge")
            if one["paid"] and not one["amount_refunded"] and one["id"] not in disputed
        ]
        if charges:
            charge = charges[number % len(charges)]["id"]
            self.control("POST", "disputes", charge=charge, reason="fraudulent")

    def control(self, method, path, **body):
        return self.service.customers[0].world.control(method, path, **body)

    @rule(kind=st.sampled_from(FAULTS), path=st.sampled_from(("/v1/payment_intents*", "/v1/*")))
    def break_calls(self, kind, path):
        self.service.customers[0].world.fault(kind, path=path, count=3)

    @rule(kind=st.sampled_from(FLAWS))
    def break_webhooks(self, kind):
        self.service.customers[0].world.webhook_fault(kind)

    @rule(minutes=st.sampled_from((1, 20, 300)))
    def wait(self, minutes):
        self.service.move(minutes=minutes)
        self.service.beat()

    @rule(days=st.sampled_from((1, 4, 15)))
    def wait_for_days(self, days):
        self.service.heal()
        self.service.live(24 * days)

    @rule()
    def wait_for_the_next_month(self):
        self.service.heal()
        self.service.end_month()

    @invariant()
    def an_invoice_has_one_live_charge_and_is_not_paid_beyond_its_amount(self):
        ledgers.check_now()
        for customer, row in self.service.receivables():
            with organization_scope(customer.id):
                live = PaymentAttempt.objects.filter(
                    invoices__invoice_id=row.pk, state__in=LIVE_STATES
                )
                assert live.count() <= 1
                paid = sum(part.amount_minor for part in payments_of(row.pk))
            assert 0 <= paid <= row.amount_minor
        for customer in self.service.customers:
            ledgers.require_ledger_agrees(customer.id)

    @invariant()
    def stripe_holds_no_more_than_was_invoiced(self):
        for customer in self.service.customers:
            names = {
                one["id"]
                for one in self.service.objects("payment_intent")
                if one["metadata"].get("organization") == customer.id
            }
            charges = {
                one["id"]: one["amount"] - one["amount_refunded"]
                for one in self.service.objects("charge")
                if one["paid"] and one["payment_intent"] in names
            }
            for one in self.service.objects("dispute"):
                if one["charge"] in charges and one["status"] in {"lost", "needs_response"}:
                    charges[one["charge"]] -= one["amount"]
            with organization_scope(customer.id):
                totals = Invoice.objects.filter(kind=InvoiceKind.INVOICE)
                invoiced = sum(totals.values_list("total_minor", flat=True))
                # What is charged in advance is credit, once it is entered.
                payments = Payment.objects.filter(method="card")
                invoiced += sum(payments.values_list("unapplied_minor", flat=True))
                live = PaymentAttempt.objects.filter(first_invoice=None, state__in=LIVE_STATES)
                invoiced += sum(live.values_list("amount_minor", flat=True))
            assert sum(charges.values()) <= invoiced

    @invariant()
    def a_card_that_has_not_paid_serves_no_more_than_its_limit(self):
        enforce_allowances()
        judge_payers()
        with system_scope():
            unproved = Payer.objects.filter(proved_at=None).values_list("pk", flat=True)
            links = PayerOrganization.objects.filter(until=None, payer_id__in=list(unproved))
            owners: dict[str, list[str]] = {}
            for payer_id, owner in links.values_list("payer_id", "organization_id"):
                owners.setdefault(payer_id, []).append(owner)
        for group in owners.values():
            owed = sum(one.total_minor for one in owed_by(group).values())
            if owed >= LIMIT:
                ours = [one for one in self.service.customers if one.id in group]
                assert all(self.service.is_refused(customer) for customer in ours)

    @invariant()
    def every_debt_is_on_the_calendar_after_two_beats(self):
        # The first one hears of what happened, the second one acts on it.
        self.service.beat()
        self.service.beat()
        for customer in self.service.customers:
            with organization_scope(customer.id):
                live = PaymentAttempt.objects.filter(state__in=LIVE_STATES)
                assert not live.filter(check_at=None).exists()
                under_way = set(live.values_list("invoices__invoice_id", flat=True))
                unpaid = UnpaidInvoice.objects.filter(ended_at=None)
                noted = dict(unpaid.values_list("pk", "since"))
                dunning = Dunning.objects.filter(pk=customer.id).first()
            rows = [row for of, row in self.service.receivables() if of is customer]
            owed = [row for row in rows if row.open_minor]
            waiting = [row for row in owed if row.pk not in noted and row.pk not in under_way]
            # Another charge of theirs is under way, for a day at most; small ones wait for more.
            if not under_way:
                assert sum(row.open_minor for row in waiting) < MINIMUM
            if any(noted.values()):
                assert dunning is not None
                assert dunning.stage != DunningStage.PAID
                assert dunning.check_at is not None
            self.require_no_service_beyond_the_calendar(customer, owed)

    def require_no_service_beyond_the_calendar(self, customer, owed):
        at = self.service.clock.now
        known = {row.pk for row in owed}
        for invoice_id in [one for one in self.first_open if one[0] == customer.id]:
            if invoice_id[1] not in known:
                del self.first_open[invoice_id]
        large = [row for row in owed if row.open_minor >= MINIMUM]
        since = [self.first_open.setdefault((customer.id, row.pk), at) for row in large]
        if since and at - min(since) > SERVED_FOR:
            assert self.service.is_refused(customer)

    @invariant()
    def what_is_free_is_given_once(self):
        with system_scope():
            shares = list(AllowanceShare.objects.filter(meter=INGRESS, revision=1))
        pools: dict[object, int] = {}
        trials: dict[str, int] = {}
        for share in shares:
            mailbox = self.service.mailboxes[share.organization_id]
            trials[mailbox] = trials.get(mailbox, 0) + int(share.of_trial)
            if share.kind == AllowanceKind.POOL:
                key = (share.month, share.payer_id)
                # What slips past a trial before traffic is refused is a minute's at most.
                assert int(share.free_before) - int(share.of_trial) <= MINUTE_OF_TRIAL
                taken = int(share.quantity) - int(share.free_before)
                pools[key] = pools.get(key, 0) + taken
        assert all(taken <= FREE for taken in pools.values()), pools
        assert all(taken <= FREE for taken in trials.values()), trials

    @invariant()
    def whoever_used_something_is_invoiced_or_named_to_the_operator(self):
        for month in self.service.issued:
            owners = {used.organization_id for _, used in self.service.used.get(month, [])}
            with system_scope():
                rows = Invoice.objects.filter(month=month, kind=InvoiceKind.INVOICE)
                issued = set(rows.values_list("organization_id", flat=True))
                missing = MissingInvoice.objects.filter(month=month)
                named = set(missing.values_list("organization_id", flat=True))
            assert owners <= issued | named

    def come_to_the_end(self):
        service = self.service
        service.heal()
        service.end_month()
        for customer in service.customers:
            customer.world.give_card(GOOD)
        # Stripe keeps an error for a key for a day.
        service.live(30, step_hours=1)
        for customer, row in service.receivables():
            if row.open_minor >= MINIMUM:
                # What was paid and is open again is charged only by its customer.
                self.pay_at_last(customer, row.pk)
        service.live(30, step_hours=3)
        for customer, row in service.receivables():
            assert row.open_minor < MINIMUM, (customer.id, row.state)
            with organization_scope(customer.id):
                assert not PaymentAttempt.objects.filter(state__in=LIVE_STATES).exists()
        service.move(hours=1)
        assert reconcile_money().finished_at is not None
        with system_scope():
            assert list(MoneyDifference.objects.filter(ended_at=None)) == []

    def pay_at_last(self, customer, invoice_id):
        answer = customer.request("POST", f"/invoices/{invoice_id}/pay", {})
        assert answer.status_code in {200, 409}, answer.content


@pytest.mark.django_db
def test_hostile_customers_pay_or_are_followed_up():
    run_state_machine_as_test(
        Hostile, settings=settings(ONE_BY_ONE, max_examples=2, stateful_step_count=8)
    )


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.django_db
def test_hostile_customers_pay_or_are_followed_up_for_long():
    run_state_machine_as_test(
        Hostile, settings=settings(ONE_BY_ONE, max_examples=20, stateful_step_count=40)
    )

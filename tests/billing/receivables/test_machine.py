"""Random events of money: after each, tables, ledger and a plain model of the rules agree."""

import dataclasses
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import transaction
from django.utils import timezone
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from billing.errors import NothingOpen, RefundTooLarge
from billing.models import Credit, JournalEntry, Payment, Posting, Receivable, Settlement
from billing.receivables import services
from console.base.accounts.models import Organization
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.oracle import Oracle

AMOUNTS = st.integers(1, 12)
START = datetime(2026, 10, 4, tzinfo=UTC)


class Money(RuleBasedStateMachine):
    """One organization's invoices, payments, credits, refunds and disputes."""

    invoices = Bundle("invoices")
    payments = Bundle("payments")
    disputes = Bundle("disputes")

    def __init__(self):
        super().__init__()
        self.block = transaction.atomic()
        # Like the block around a test: a task's transaction may begin within it.
        vars(self.block)["_from_testcase"] = True
        self.block.__enter__()
        self.real_now, self.seconds = timezone.now, 0
        timezone.now = lambda: START + timedelta(seconds=self.seconds)
        self.documents = Path(tempfile.mkdtemp(prefix="freshet-machine-"))
        self.known = config()
        billing = dataclasses.replace(self.known.billing, documents=str(self.documents))
        django_settings.FRESHET = dataclasses.replace(self.known, billing=billing)
        organization = Organization(name="Machine")
        with organization_scope(organization.pk):
            organization.save(force_insert=True)
        self.id = organization.pk
        self.oracle, self.months, self.events = Oracle(), 0, 0

    def teardown(self):
        timezone.now = self.real_now
        django_settings.FRESHET = self.known
        shutil.rmtree(self.documents)
        transaction.set_rollback(True)
        self.block.__exit__(None, None, None)

    def name(self):
        """A new external id. Each event is a second after the one before."""
        self.events += 1
        self.seconds += 1
        return f"event-{self.events}"

    def scope(self):
        return organization_scope(self.id)

    @rule(target=invoices, amount=st.integers(0, 12))
    def issue(self, amount):
        self.name()
        invoice = ledgers.issue_amount(self.id, amount, ledgers.month_number(self.months))
        self.months += 1
        self.oracle.issue(invoice, amount)
        return invoice if amount else multiple()

    @rule(target=payments, amount=AMOUNTS, method=st.sampled_from(["card", "transfer"]))
    def pay(self, amount, method):
        return self.paid(amount, method, None)

    @rule(target=payments, amount=AMOUNTS, invoice=invoices)
    def pay_one(self, amount, invoice):
        return self.paid(amount, "transfer", invoice)

    @rule(target=payments, invoice=invoices, method=st.sampled_from(["card", "other"]))
    def pay_exactly(self, invoice, method):
        still_open = self.oracle.invoices[invoice].open
        return self.paid(still_open, method, invoice) if still_open else multiple()

    def paid(self, amount, method, invoice):
        name = self.name()
        call = {
            "organization_id": self.id,
            "method": method,
            "amount_minor": amount,
            "currency": "USD",
            "external_id": name,
            "received_at": START,
            "by": "tests",
            "invoice_ids": [invoice] if invoice else None,
        }
        with self.scope():
            payment = services.record_payment(**call).pk
            # Webhooks and people repeat themselves.
            assert services.record_payment(**call).pk == payment
        self.oracle.pay(payment, amount, invoice)
        return payment

    @rule(amount=AMOUNTS)
    def grant(self, amount):
        self.name()
        with self.scope():
            credit = services.grant_credit(
                organization_id=self.id, amount_minor=amount, currency="USD", reason="x", by="tests"
            )
        self.oracle.grant(credit.pk, amount)

    @rule(invoice=invoices)
    def write_off(self, invoice):
        self.name()
        state = self.oracle.invoices[invoice].state
        with self.scope():
            if state in {"paid", "void"}:
                with pytest.raises(NothingOpen):
                    services.write_off(invoice_id=invoice, reason="x", by="tests")
                return
            services.write_off(invoice_id=invoice, reason="x", by="tests")
        self.oracle.write_off(invoice)

    @rule(invoice=consumes(invoices))
    def take_back(self, invoice):
        self.name()
        ledgers.void(invoice)
        self.oracle.take_back(invoice)

    @rule(payment=payments, amount=AMOUNTS, is_goodwill=st.booleans())
    def refund(self, payment, amount, is_goodwill):
        call = {
            "payment_id": payment,
            "amount_minor": amount,
            "external_id": self.name(),
            "by": "tests",
            "reason": "x",
            "is_goodwill": is_goodwill,
        }
        with self.scope():
            if amount > self.oracle.left[payment]:
                with pytest.raises(RefundTooLarge):
                    services.refund_payment(**call)
                return
            before = set(Credit.objects.values_list("pk", flat=True))
            refund = services.refund_payment(**call)
            assert services.refund_payment(**call).pk == refund.pk
            added = set(Credit.objects.values_list("pk", flat=True)) - before
        assert len(added) <= is_goodwill
        self.oracle.refund(payment, amount, *added)

    @rule(target=disputes, payment=payments, amount=AMOUNTS)
    def dispute(self, payment, amount):
        name = self.name()
        at = timezone.now()
        call = {"payment_id": payment, "amount_minor": amount, "external_id": name, "at": at}
        with self.scope():
            if amount > self.oracle.left[payment]:
                with pytest.raises(RefundTooLarge):
                    services.record_dispute(**call)
                return multiple()
            services.record_dispute(**call)
            services.record_dispute(**call)
        self.oracle.dispute(name, payment, amount)
        return name

    @rule(dispute=consumes(disputes), won=st.booleans())
    def close(self, dispute, won):
        self.name()
        with self.scope():
            services.close_dispute(external_id=dispute, won=won, at=timezone.now())
            services.close_dispute(external_id=dispute, won=won, at=timezone.now())
        self.oracle.close(dispute, won=won)

    @invariant()
    def all_agree(self):
        ledgers.check_now()
        ledgers.require_ledger_agrees(self.id)
        rows = ledgers.states(self.id)
        assert rows == {
            invoice: (row.open, row.state) for invoice, row in self.oracle.invoices.items()
        }
        assert ledgers.credit_of(self.id) == self.oracle.credit
        accounts = ledgers.accounts(self.id)
        assert accounts.get("bank", 0) + accounts.get("card_clearing", 0) == self.oracle.cash
        written_off = sum(row.written_off for row in self.oracle.invoices.values())
        assert accounts.get("bad_debt", 0) == written_off
        with self.scope():
            balance = services.balance_of(self.id, currency="USD")
            assert [row.pk for row in services.open_of(self.id)] == [
                invoice for invoice, row in self.oracle.invoices.items() if row.open
            ]
        still_open = sum(row.open for row in self.oracle.invoices.values())
        assert (balance.open_minor, balance.credit_minor) == (still_open, self.oracle.credit)
        # Nobody has credit and owes at a time.
        assert not (balance.open_minor and balance.credit_minor)

    @invariant()
    def no_invoice_is_paid_twice(self):
        with self.scope():
            for row in Receivable.objects.all():
                paid = services.payments_of(row.pk)
                assert all(part.amount_minor > 0 for part in paid)
                total = sum(part.amount_minor for part in paid)
                gone = row.amount_minor if row.state == "void" else 0
                assert total + row.open_minor + row.written_off_minor + gone == row.amount_minor

    @invariant()
    def each_entry_sums_to_0(self):
        with self.scope():
            for entry in JournalEntry.objects.prefetch_related("postings"):
                amounts = [posting.amount_minor for posting in entry.postings.all()]
                assert sum(amounts) == 0
                assert len(amounts) == entry.posting_count >= 2

    @precondition(lambda self: self.months)
    @invariant()
    def what_is_written_is_of_one_organization(self):
        with system_scope():
            for kind in (Payment, Credit, Settlement, Posting, JournalEntry, Receivable):
                assert set(kind.objects.values_list("organization_id", flat=True)) <= {self.id}


@pytest.mark.django_db
def test_tables_ledger_and_rules_agree_after_every_event():
    run_state_machine_as_test(Money, settings=settings(max_examples=6, stateful_step_count=14))


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.django_db
def test_they_agree_after_many_more():
    run_state_machine_as_test(Money, settings=settings(max_examples=40, stateful_step_count=30))

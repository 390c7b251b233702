"""Refunds, goodwill, and disputes: what is owed again, and what is not."""

from datetime import timedelta

import pytest

from billing.errors import PaymentConflict, RefundTooLarge
from billing.models import Dispute, Refund
from billing.receivables import services
from console.base.common.errors import NotFound
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.conftest import AT
from tests.billing.receivables.test_payments import pay

pytestmark = pytest.mark.usefixtures("checked")


def refund(owner, payment, amount, name="back-1", **more):
    with organization_scope(owner):
        return services.refund_payment(
            payment_id=payment.pk,
            amount_minor=amount,
            external_id=name,
            by="tests",
            reason="paid twice",
            **more,
        )


def dispute(owner, payment, amount, name="dp_1"):
    with organization_scope(owner):
        return services.record_dispute(
            payment_id=payment.pk, amount_minor=amount, external_id=name, at=AT
        )


def close(owner, *, won, name="dp_1"):
    with organization_scope(owner):
        return services.close_dispute(external_id=name, won=won, at=AT)


def test_what_pays_nothing_is_given_back_first(owner):
    invoice = ledgers.issue_amount(owner, 100)
    payment = pay(owner, 150)
    refund(owner, payment, 40)
    assert ledgers.states(owner) == {invoice: (0, "paid")}
    assert ledgers.accounts(owner) == {"bank": 110, "customer_credit": -10, "revenue": -100}
    refund(owner, payment, 30, "back-2")
    assert ledgers.states(owner) == {invoice: (20, "open")}
    assert ledgers.receivable(invoice).settled_at is None
    assert ledgers.accounts(owner) == {"bank": 80, "receivable": 20, "revenue": -100}


def test_the_newest_invoice_is_owed_again_first(owner, clock):
    old = ledgers.issue_amount(owner, 100, ledgers.month_number(0))
    clock.now = AT + timedelta(days=1)
    new = ledgers.issue_amount(owner, 100, ledgers.month_number(1))
    payment = pay(owner, 200)
    refund(owner, payment, 130)
    assert ledgers.states(owner) == {old: (30, "open"), new: (100, "open")}


def test_goodwill_leaves_invoices_paid(owner):
    invoice = ledgers.issue_amount(owner, 100)
    payment = pay(owner, 110)
    row = refund(owner, payment, 60, is_goodwill=True)
    assert (row.amount_minor, row.goodwill_minor) == (60, 50)
    assert ledgers.states(owner) == {invoice: (0, "paid")}
    assert ledgers.accounts(owner) == {"bank": 50, "goodwill": 50, "revenue": -100}
    with organization_scope(owner):
        paid = services.payments_of(invoice)
    assert {part.method: part.amount_minor for part in paid} == {"transfer": 50, "credit": 50}


def test_no_more_than_the_payment_is_given_back(owner):
    ledgers.issue_amount(owner, 100)
    payment = pay(owner, 100)
    refund(owner, payment, 60)
    with pytest.raises(RefundTooLarge, match="Only 40 of"):
        refund(owner, payment, 41, "back-2")
    refund(owner, payment, 40, "back-2")
    with organization_scope(owner):
        assert Refund.objects.count() == 2


def test_it_is_entered_once_and_only_as_it_is(owner, other_tenant):
    payment = pay(owner, 100)
    first = refund(owner, payment, 60)
    assert refund(owner, payment, 60).pk == first.pk
    with pytest.raises(PaymentConflict):
        refund(owner, payment, 30)
    with pytest.raises(PaymentConflict):
        refund(other_tenant.id, pay(other_tenant.id, 60, "bank-2"), 60)
    with pytest.raises(NotFound):
        refund(other_tenant.id, payment, 1, "back-2")
    with organization_scope(owner):
        (entry,) = AuditEntry.objects.filter(action="payment.refund")
    assert (entry.detail["reason"], entry.detail["amount_minor"]) == ("paid twice", 60)


def test_credit_pays_what_a_refund_opens_again(owner, clock):
    invoice = ledgers.issue_amount(owner, 100)
    payment = pay(owner, 100)
    clock.now = AT + timedelta(days=1)
    pay(owner, 30, "bank-2")
    refund(owner, payment, 50)
    assert ledgers.states(owner) == {invoice: (20, "open")}
    assert ledgers.credit_of(owner) == 0


def test_a_disputed_payment_pays_until_the_dispute_is_lost(owner):
    invoice = ledgers.issue_amount(owner, 100)
    payment = pay(owner, 120, method="card")
    dispute(owner, payment, 120)
    assert ledgers.states(owner) == {invoice: (0, "paid")}
    # The money is gone, and so is the credit.
    assert ledgers.accounts(owner) == {"disputed": 100, "revenue": -100}
    with organization_scope(owner):
        (part,) = services.payments_of(invoice)
    assert (part.id, part.amount_minor) == (payment.pk, 100)
    with pytest.raises(RefundTooLarge):
        refund(owner, payment, 1)
    close(owner, won=False)
    assert ledgers.states(owner) == {invoice: (100, "open")}
    assert ledgers.accounts(owner) == {"receivable": 100, "revenue": -100}
    with pytest.raises(RefundTooLarge):
        refund(owner, payment, 1)


def test_a_won_dispute_brings_all_back(owner):
    invoice = ledgers.issue_amount(owner, 100)
    payment = pay(owner, 120, method="card")
    before = ledgers.accounts(owner)
    dispute(owner, payment, 110)
    assert ledgers.accounts(owner) == {"card_clearing": 10, "disputed": 90, "revenue": -100}
    close(owner, won=True)
    assert ledgers.accounts(owner) == before
    assert ledgers.states(owner) == {invoice: (0, "paid")}
    assert refund(owner, payment, 120).amount_minor == 120


def test_a_dispute_is_entered_and_closed_once(owner):
    payment = pay(owner, 100, method="card")
    first = dispute(owner, payment, 60)
    assert dispute(owner, payment, 60).pk == first.pk
    with pytest.raises(PaymentConflict):
        dispute(owner, payment, 50)
    with pytest.raises(RefundTooLarge):
        dispute(owner, payment, 41, "dp_2")
    assert close(owner, won=True).pk == first.pk
    assert close(owner, won=True).pk == first.pk
    with pytest.raises(PaymentConflict):
        close(owner, won=False)
    with pytest.raises(NotFound):
        close(owner, won=True, name="dp_2")
    with organization_scope(owner):
        assert Dispute.objects.get().state == "won"
        actions = AuditEntry.objects.filter(action__startswith="payment.").order_by("created_at")
        assert {entry.action for entry in actions} == {
            "payment.record",
            "payment.dispute",
            "payment.close_dispute",
        }


def test_an_invoice_that_is_taken_back_while_its_payment_is_disputed(owner, clock):
    invoice = ledgers.issue_amount(owner, 100)
    payment = pay(owner, 100, method="card")
    dispute(owner, payment, 70)
    clock.now = AT + timedelta(days=1)
    ledgers.void(invoice)
    # The part that nobody disputes is credit at once.
    assert ledgers.accounts(owner) == {"card_clearing": 30, "customer_credit": -30}
    close(owner, won=True)
    assert ledgers.accounts(owner) == {"card_clearing": 100, "customer_credit": -100}
    assert ledgers.states(owner) == {invoice: (0, "void")}

"""Credit that is granted, and invoices that are written off and paid after all."""

from datetime import timedelta

import pytest

from billing.errors import NothingOpen, PaymentConflict
from billing.receivables import services
from console.base.common.errors import NotFound
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.conftest import AT
from tests.billing.receivables.test_payments import pay
from tests.billing.receivables.test_refunds import refund

pytestmark = pytest.mark.usefixtures("checked")


def grant(owner, amount, name=None):
    with organization_scope(owner):
        return services.grant_credit(
            organization_id=owner,
            amount_minor=amount,
            currency="USD",
            reason="an outage",
            by="tests",
            external_id=name,
        )


def write_off(owner, invoice):
    with organization_scope(owner):
        return services.write_off(invoice_id=invoice, reason="insolvent", by="tests")


def test_credit_pays_what_is_open_and_then_what_comes(owner, clock):
    first = ledgers.issue_amount(owner, 100)
    assert grant(owner, 130).unapplied_minor == 30
    assert ledgers.states(owner) == {first: (0, "paid")}
    assert ledgers.accounts(owner) == {"goodwill": 130, "customer_credit": -30, "revenue": -100}
    clock.now = AT + timedelta(days=1)
    second = ledgers.issue_amount(owner, 50, ledgers.month_number(1))
    assert ledgers.states(owner)[second] == (20, "open")
    with organization_scope(owner):
        (part,) = services.payments_of(second)
    assert (part.method, part.amount_minor) == ("credit", 30)


def test_a_named_credit_is_granted_once(owner, other_tenant):
    first = grant(owner, 30, "ticket 1")
    assert grant(owner, 30, "ticket 1").pk == first.pk
    for owner_id, amount in ((owner, 31), (other_tenant.id, 30)):
        with pytest.raises(PaymentConflict):
            grant(owner_id, amount, "ticket 1")
    assert grant(owner, 30).pk != grant(owner, 30).pk
    assert ledgers.credit_of(owner) == 90


def test_an_invoice_is_written_off(owner, clock):
    invoice = ledgers.issue_amount(owner, 100)
    pay(owner, 40)
    clock.now = AT + timedelta(days=90)
    row = write_off(owner, invoice)
    assert (row.state, row.open_minor, row.written_off_minor) == ("uncollectible", 0, 60)
    assert row.settled_at == clock.now
    assert ledgers.accounts(owner) == {"bank": 40, "bad_debt": 60, "revenue": -100}
    assert write_off(owner, invoice).pk == invoice
    with organization_scope(owner):
        (entry,) = AuditEntry.objects.filter(action="invoice.write_off")
    assert (entry.target_id, entry.detail["reason"]) == (invoice, "insolvent")
    assert entry.detail["amount_minor"] == 60


def test_what_is_paid_or_unknown_is_not_written_off(owner, other_tenant):
    invoice = ledgers.issue_amount(owner, 100)
    pay(owner, 100)
    with pytest.raises(NothingOpen):
        write_off(owner, invoice)
    with pytest.raises(NotFound):
        write_off(other_tenant.id, invoice)


def test_a_payment_that_names_it_takes_the_write_off_back(owner, clock):
    invoice = ledgers.issue_amount(owner, 100)
    write_off(owner, invoice)
    # A payment that names nothing is credit: nobody knows that it is for this.
    assert pay(owner, 10).unapplied_minor == 10
    clock.now = AT + timedelta(days=1)
    pay(owner, 40, "bank-2", invoices=[invoice])
    assert ledgers.states(owner) == {invoice: (0, "uncollectible")}
    assert ledgers.accounts(owner)["bad_debt"] == 60
    pay(owner, 80, "bank-3", invoices=[invoice])
    assert ledgers.states(owner) == {invoice: (0, "paid")}
    assert ledgers.receivable(invoice).settled_at == clock.now
    assert ledgers.accounts(owner) == {"bank": 130, "customer_credit": -30, "revenue": -100}


def test_it_may_be_written_off_again(owner):
    invoice = ledgers.issue_amount(owner, 100)
    payment = pay(owner, 40)
    write_off(owner, invoice)
    refund(owner, payment, 40)
    assert ledgers.states(owner) == {invoice: (40, "open")}
    row = write_off(owner, invoice)
    assert (row.state, row.written_off_minor) == ("uncollectible", 100)


def test_a_void_invoice_was_no_loss(owner, clock):
    invoice = ledgers.issue_amount(owner, 100)
    pay(owner, 40)
    write_off(owner, invoice)
    clock.now = AT + timedelta(days=1)
    ledgers.void(invoice)
    assert ledgers.accounts(owner) == {"bank": 40, "customer_credit": -40}
    assert ledgers.receivable(invoice).written_off_minor == 0
    with pytest.raises(NothingOpen):
        write_off(owner, invoice)

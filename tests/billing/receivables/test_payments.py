"""Payments: partial, exact, too much, twice; which invoices they pay."""

from datetime import timedelta

import pytest

from billing.errors import PaymentConflict
from billing.models import Payment, Receivable
from billing.receivables import services
from billing.receivables.signals import receivables_changed
from console.base.common.errors import NotFound
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.conftest import AT
from tests.billing.world import invoices_of, issue_invoices

pytestmark = pytest.mark.usefixtures("checked")


def pay(owner, amount, name="bank-1", *, invoices=None, method="transfer", **more):
    with organization_scope(owner):
        return services.record_payment(
            organization_id=owner,
            method=method,
            amount_minor=amount,
            currency="USD",
            external_id=name,
            received_at=AT,
            by="tests",
            invoice_ids=invoices,
            **more,
        )


def test_an_invoice_of_a_month_is_owed(used, owner, collector):
    collector("transfer")
    issue_invoices()
    (invoice,) = invoices_of(owner)
    row = ledgers.receivable(invoice.pk)
    assert (row.amount_minor, row.open_minor, row.payable_minor) == (180, 180, 180)
    assert (row.state, row.settled_at) == ("open", None)
    assert row.due_on == (AT + timedelta(days=14)).date()
    assert services.parse_reference(row.reference) == services.reference_of(str(invoice.number))
    assert ledgers.accounts(owner) == {"receivable": 180, "revenue": -180}


def test_without_a_collector_it_is_owed_and_never_due(owner):
    row = ledgers.receivable(ledgers.issue_amount(owner, 180))
    assert (row.open_minor, row.due_on) == (180, None)
    with system_scope():
        assert services.set_due_dates(at=AT) == 0


def test_when_a_collector_is_chosen_later_all_is_due_from_then_on(owner, collector):
    invoice = ledgers.issue_amount(owner, 180)
    collector("transfer")
    later = AT + timedelta(days=300)
    with system_scope():
        assert services.set_due_dates(at=later) == 1
        assert services.set_due_dates(at=later + timedelta(days=1)) == 0
    assert ledgers.receivable(invoice).due_on == (later + timedelta(days=14)).date()


def test_an_invoice_over_nothing_is_owed_by_nobody(owner):
    ledgers.issue_amount(owner, 0)
    assert ledgers.states(owner) == {}


def test_parts_of_it_come_in(owner, clock):
    invoice = ledgers.issue_amount(owner, 100)
    pay(owner, 30)
    assert ledgers.states(owner) == {invoice: (70, "open")}
    clock.now = AT + timedelta(days=3)
    pay(owner, 70, "bank-2")
    row = ledgers.receivable(invoice)
    assert (row.open_minor, row.state, row.settled_at) == (0, "paid", clock.now)
    assert ledgers.accounts(owner) == {"bank": 100, "revenue": -100}
    with organization_scope(owner):
        paid = services.payments_of(invoice)
    assert [(part.method, part.amount_minor) for part in paid] == [
        ("transfer", 30),
        ("transfer", 70),
    ]


def test_the_oldest_invoice_is_paid_first_and_the_rest_is_credit(owner, clock):
    old = ledgers.issue_amount(owner, 100, ledgers.month_number(0))
    clock.now = AT + timedelta(days=1)
    new = ledgers.issue_amount(owner, 50, ledgers.month_number(1))
    assert pay(owner, 120).unapplied_minor == 0
    assert ledgers.states(owner) == {old: (0, "paid"), new: (30, "open")}
    assert pay(owner, 40, "bank-2").unapplied_minor == 10
    assert ledgers.accounts(owner) == {"bank": 160, "customer_credit": -10, "revenue": -150}


def test_named_invoices_are_paid_before_the_others(owner, clock):
    old = ledgers.issue_amount(owner, 100, ledgers.month_number(0))
    clock.now = AT + timedelta(days=1)
    new = ledgers.issue_amount(owner, 50, ledgers.month_number(1))
    pay(owner, 50, invoices=[new])
    assert ledgers.states(owner) == {old: (100, "open"), new: (0, "paid")}
    # Paid already: the money is for the other one.
    pay(owner, 20, "bank-2", invoices=[new])
    assert ledgers.states(owner) == {old: (80, "open"), new: (0, "paid")}


def test_credit_pays_the_next_invoice(owner, clock):
    assert pay(owner, 70).unapplied_minor == 70
    clock.now = AT + timedelta(days=1)
    invoice = ledgers.issue_amount(owner, 100)
    row = ledgers.receivable(invoice)
    assert (row.open_minor, row.payable_minor) == (30, 30)
    clock.now = AT + timedelta(days=2)
    pay(owner, 50, "bank-2")
    clock.now = AT + timedelta(days=3)
    row = ledgers.receivable(ledgers.issue_amount(owner, 20, ledgers.month_number(1)))
    assert (row.open_minor, row.payable_minor, row.state) == (0, 0, "paid")
    assert ledgers.credit_of(owner) == 0


def test_it_is_entered_once_and_only_as_it_is(owner, other_tenant):
    ledgers.issue_amount(owner, 100)
    first = pay(owner, 60)
    assert pay(owner, 60).pk == first.pk
    assert ledgers.accounts(owner)["bank"] == 60
    with pytest.raises(PaymentConflict):
        pay(owner, 61)
    # The same id is another payment with another method, and nobody else's.
    assert pay(owner, 60, method="card").pk != first.pk
    with pytest.raises(PaymentConflict):
        pay(other_tenant.id, 60)
    assert ledgers.accounts(other_tenant.id) == {}


def test_what_is_not_owed_is_not_found(owner, other_tenant):
    foreign = ledgers.issue_amount(other_tenant.id, 100)
    with pytest.raises(NotFound):
        pay(owner, 100, invoices=[foreign])
    with pytest.raises(NotFound):
        pay(owner, 100, invoices=["inv_aaaaaaaaaaaaaaaaaaaa"])
    with organization_scope(owner):
        assert not Payment.objects.exists()


def test_a_void_invoice_is_paid_by_nothing(owner, clock):
    invoice = ledgers.issue_amount(owner, 100)
    pay(owner, 30)
    clock.now = AT + timedelta(days=1)
    ledgers.void(invoice)
    assert ledgers.states(owner) == {invoice: (0, "void")}
    assert ledgers.accounts(owner) == {"bank": 30, "customer_credit": -30}
    assert pay(owner, 100, "bank-2", invoices=[invoice]).unapplied_minor == 100
    # What was paid for it pays the next one.
    clock.now = AT + timedelta(days=2)
    corrected = ledgers.issue_amount(owner, 130, ledgers.month_number(1))
    assert ledgers.states(owner)[corrected] == (0, "paid")


def test_amounts_of_other_currencies_are_apart(owner):
    ledgers.issue_amount(owner, 100)
    with organization_scope(owner):
        payment = services.record_payment(
            organization_id=owner,
            method="transfer",
            amount_minor=100,
            currency="EUR",
            external_id="bank-1",
            received_at=AT,
            by="tests",
        )
        assert payment.unapplied_minor == 100
        assert services.balance_of(owner).open_minor == 100
        assert services.balance_of(owner, currency="EUR").credit_minor == 100


def test_the_balance_says_what_is_overdue(owner, collector, clock):
    collector("transfer")
    ledgers.issue_amount(owner, 100)
    clock.now = AT + timedelta(days=14)
    with organization_scope(owner):
        assert services.balance_of(owner) == services.Balance(100, 0, 0, "USD")
    clock.now = AT + timedelta(days=15)
    ledgers.issue_amount(owner, 40, ledgers.month_number(1))
    with organization_scope(owner):
        assert services.balance_of(owner) == services.Balance(140, 100, 0, "USD")
    collector("none")
    with organization_scope(owner):
        assert services.balance_of(owner).overdue_minor == 0


def test_it_is_signaled_in_the_transaction_and_audited(owner):
    ledgers.issue_amount(owner, 100)
    seen = []

    def note(sender, organization_id, **_):
        seen.append((organization_id, Receivable.objects.get().open_minor))

    receivables_changed.connect(note)
    try:
        payment = pay(owner, 30, note="by telephone")
        pay(owner, 30, note="by telephone")
    finally:
        receivables_changed.disconnect(note)
    assert seen == [(owner, 70)]
    with organization_scope(owner):
        (entry,) = AuditEntry.objects.filter(action="payment.record")
    assert (entry.target_id, entry.detail["by"]) == (payment.pk, "tests")
    assert (entry.detail["amount_minor"], entry.detail["currency"]) == (30, "USD")


def test_a_receiver_that_raises_undoes_the_payment(owner):
    def fail(**_):
        raise RuntimeError

    receivables_changed.connect(fail)
    try:
        with pytest.raises(RuntimeError):
            pay(owner, 30)
    finally:
        receivables_changed.disconnect(fail)


def test_a_run_over_all_uses_the_credit_of_each(other_tenant, owner, clock):
    for tenant_id in (owner, other_tenant.id):
        with organization_scope(tenant_id):
            services.grant_credit(
                organization_id=tenant_id, amount_minor=30, currency="USD", reason="x", by="tests"
            )
    clock.now = AT + timedelta(days=1)
    ids = ledgers.issue_amounts({owner: 100, other_tenant.id: 20})
    assert [ledgers.receivable(pk).payable_minor for pk in ids] == [70, 0]
    ledgers.require_ledger_agrees(other_tenant.id)

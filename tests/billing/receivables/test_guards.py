"""What PostgreSQL refuses, whoever asks: the serving role, and the owner of the tables."""

import pytest
from django.db import DatabaseError, transaction

from billing.errors import NumbersDiverged
from billing.models import (
    Credit,
    InvoiceLine,
    JournalEntry,
    NumberBlock,
    NumberSeries,
    Payment,
    Receivable,
    Settlement,
)
from billing.services import numbers
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.test_credits import grant
from tests.billing.receivables.test_payments import pay
from tests.billing.receivables.test_refunds import dispute, refund
from tests.billing.test_guards import run
from tests.billing.world import issue_invoices

REFUSED = r"is refused|permission denied|never change"
# Each would change money, a number or what is billed, and none is a step of the program's own.
STATEMENTS = [
    "UPDATE billing_receivable SET amount_minor = amount_minor + 1",
    "UPDATE billing_receivable SET reference = 'RF18539007547034'",
    "UPDATE billing_receivable SET organization_id = 'org_aaaaaaaaaaaaaaaaaaaa'",
    "DELETE FROM billing_receivable",
    "UPDATE billing_payment SET amount_minor = amount_minor + 1",
    "UPDATE billing_payment SET currency = 'EUR'",
    "UPDATE billing_payment SET external_id = 'other'",
    "DELETE FROM billing_payment",
    "UPDATE billing_credit SET amount_minor = amount_minor + 1",
    "DELETE FROM billing_credit",
    "UPDATE billing_refund SET amount_minor = 1",
    "DELETE FROM billing_refund",
    "UPDATE billing_dispute SET amount_minor = amount_minor + 1",
    "DELETE FROM billing_dispute",
    "UPDATE billing_settlement SET amount_minor = amount_minor + 1",
    "DELETE FROM billing_settlement",
    "UPDATE billing_numberseries SET last = last + 1",
    "UPDATE billing_numberseries SET last = 0",
    "INSERT INTO billing_numberseries (series, last) VALUES ('FR-2099', 7)",
    "DELETE FROM billing_numberseries",
    "UPDATE billing_numberblock SET last = last + 1",
    "UPDATE billing_numberblock SET key = 'other'",
    "DELETE FROM billing_numberblock",
    "DELETE FROM metering_rolluppointer",
    "UPDATE metering_rolluppointer SET day = day + 400",
    "UPDATE metering_rolluppointer SET cell = 'other'",
    "UPDATE metering_rolluppointer SET run_id = 'run_of_nothing'",
]
TABLES = (
    *("billing_invoice", "billing_invoiceline", "billing_invoicedocument", "billing_usagebasis"),
    *("billing_journalentry", "billing_posting", "billing_receivable", "billing_payment"),
    *("billing_credit", "billing_refund", "billing_dispute", "billing_settlement"),
    *("billing_numberseries", "billing_numberblock", "billing_lostnumber"),
    *("billing_price", "billing_priceversion"),
    *("metering_rolluppointer", "metering_rolluprun", "metering_usagerow"),
)


@pytest.fixture
def money(used):
    """An organization with rows in every table of money."""
    issue_invoices()
    payment = pay(used.id, 300, method="card")
    grant(used.id, 20)
    refund(used.id, payment, 10)
    dispute(used.id, payment, 30)
    return used


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_serving_role_changes_no_money(money, statement):
    with pytest.raises(DatabaseError, match=REFUSED):
        run(statement, money.id)


@pytest.mark.parametrize("table", TABLES)
def test_the_serving_role_empties_no_table(db, table):
    with pytest.raises(DatabaseError, match="permission denied"):
        run(f"TRUNCATE {table} CASCADE", "*")


@pytest.mark.django_db(databases=["default", "owner"], transaction=True)
def test_nor_does_the_owner_of_the_tables(transactional_db, money):
    for statement in STATEMENTS:
        with pytest.raises(DatabaseError, match=REFUSED):
            run(statement, "*", alias="owner")
    for table in TABLES:
        with pytest.raises(DatabaseError, match=r"TRUNCATE of .* is refused"):
            run(f"TRUNCATE {table} CASCADE", "*", alias="owner")
    # Tables that money refers to take it with them.
    with pytest.raises(DatabaseError, match=r"TRUNCATE of .* is refused"):
        run("TRUNCATE accounts_organization CASCADE", "*", alias="owner")
    ledgers.require_ledger_agrees(money.id)


# What the serving role may write by itself, and not like this: checked at the commit.
WRONG = [
    ("UPDATE billing_receivable SET open_minor = open_minor + 1, state = 'open',"
     " settled_at = NULL", "is open, and not"),
    ("UPDATE billing_receivable SET written_off_minor = 5", "is written off, and not"),
    ("UPDATE billing_payment SET unapplied_minor = unapplied_minor + 1", "the payment"),
    ("UPDATE billing_payment SET refunded_minor = 0", "the payment"),
    ("UPDATE billing_credit SET unapplied_minor = 0", "the credit"),
    ("UPDATE billing_dispute SET unapplied_minor = 1", "the dispute"),
    ("UPDATE billing_dispute SET state = 'won', closed_at = now(), unapplied_minor = 0",
     "the (payment|dispute)"),
]  # fmt: skip


@pytest.mark.parametrize("alias", ["default", "owner"])
@pytest.mark.django_db(databases=["default", "owner"], transaction=True)
def test_amounts_follow_from_settlements(transactional_db, money, alias):
    for statement, why in WRONG:
        with pytest.raises(DatabaseError, match=why):
            run(statement, money.id, alias=alias)
    ledgers.require_ledger_agrees(money.id)


def settle(owner, receivable, amount, **source):
    """A settlement beside the program, with the row's open amount in step."""
    Settlement.objects.create(
        organization_id=owner,
        receivable=receivable,
        kind="payment",
        amount_minor=amount,
        entry=JournalEntry.objects.earliest("created_at"),
        **source,
    )
    Receivable.objects.filter(pk=receivable.pk).update(open_minor=receivable.open_minor - amount)
    ledgers.check_now()


def test_a_payment_pays_no_more_than_it_is(owner):
    pay(owner, 30)
    credit = grant(owner, 10)
    invoice = ledgers.issue_amount(owner, 100)
    owed = ledgers.receivable(invoice)
    with organization_scope(owner):
        payment = Payment.objects.get()
        for source, why in (
            ({"payment": payment}, "the payment .* of 30 pays 31"),
            ({"credit": credit}, "the credit .* of 10 pays 11"),
        ):
            with pytest.raises(DatabaseError, match=why), transaction.atomic():
                settle(owner, owed, 1, **source)
        # Nor by a row that says less is left.
        with pytest.raises(DatabaseError, match="payments_pay_their_amount"), transaction.atomic():
            Payment.objects.update(unapplied_minor=-1)
        with pytest.raises(DatabaseError, match="credits_pay"), transaction.atomic():
            Credit.objects.update(unapplied_minor=-1)


def test_an_invoice_is_paid_no_more_than_its_total(owner):
    invoice = ledgers.issue_amount(owner, 100)
    owed = ledgers.receivable(invoice)
    with organization_scope(owner):
        with pytest.raises(DatabaseError, match="open_is_a_part"), transaction.atomic():
            settle(owner, owed, 101)
        Receivable.objects.filter(pk=invoice).update(open_minor=1)
        with pytest.raises(DatabaseError, match="is open, and not"), transaction.atomic():
            ledgers.check_now()
        Receivable.objects.filter(pk=invoice).update(open_minor=100)


def test_nobody_pays_with_the_money_of_another_one(owner, other_tenant):
    foreign = pay(other_tenant.id, 100)
    owed = ledgers.receivable(ledgers.issue_amount(owner, 100))
    with transaction.atomic(), system_scope():
        Payment.objects.filter(pk=foreign.pk).update(unapplied_minor=99)
        with pytest.raises(DatabaseError, match="of another organization"), transaction.atomic():
            settle(owner, owed, 1, payment=foreign)
        transaction.set_rollback(True)


def test_a_receivable_is_over_the_total_of_an_issued_invoice(owner):
    invoice = ledgers.issue_amount(owner, 0)
    with transaction.atomic(), organization_scope(owner):
        Receivable.objects.create(
            invoice_id=invoice,
            organization_id=owner,
            currency="USD",
            amount_minor=5,
            payable_minor=5,
            open_minor=5,
            reference="RF18539007547034",
        )
        with pytest.raises(DatabaseError, match="over the total of an issued invoice"):
            ledgers.check_now()
        transaction.set_rollback(True)


def test_an_event_has_one_entry(owner):
    ledgers.issue_amount(owner, 100)
    pay(owner, 30)
    with organization_scope(owner):
        known = JournalEntry.objects.get(kind="payment")
        known.pk, known._state.adding = "je_other", True
        with pytest.raises(DatabaseError, match="one_entry_an_event"), transaction.atomic():
            known.save(force_insert=True)
        known.source_id = None
        with pytest.raises(DatabaseError, match="entries_have_one_cause"), transaction.atomic():
            known.save(force_insert=True)


def test_a_cluster_has_one_line_a_meter_and_price(used):
    issue_invoices(draft=True)
    with organization_scope(used.id):
        line = InvoiceLine.objects.filter(kind="usage").earliest("position")
        line.pk, line.position = "inl_other", 99
        with pytest.raises(DatabaseError, match="one_line_a_cluster"), transaction.atomic():
            line.save(force_insert=True)
        line.unit_price = 1 + (line.unit_price or 0)
        line.save(force_insert=True)


def test_a_series_follows_its_blocks(used):
    issue_invoices()
    series = NumberSeries.objects.get()
    block = NumberBlock.objects.get()
    assert (series.last, block.first, block.last) == (1, 1, 1)
    for first in (1, 3):
        with (
            pytest.raises(NumbersDiverged, match="moved by somebody"),
            transaction.atomic(),
        ):
            numbers.keep_block(NumberBlock(series=series, first=first, last=first, key=f"k{first}"))
    numbers.keep_block(NumberBlock(series=series, first=2, last=5, key="k2"))
    series.refresh_from_db()
    assert series.last == 5


def test_a_pointer_moves_on_and_never_back(used):
    old, new = "'run_old'", "'run_new'"
    insert = (
        "INSERT INTO metering_rolluprun (id, cell, day, state, holder, inputs, inputs_sha256,"
        " report, content_sha256, error, created_at, published_at)"
        " SELECT {id}, cell, day, '{state}', '', '[]', '', '{{}}', '', '', now(), now() + {at}"
        " FROM metering_rolluppointer WHERE day = '2026-09-01'"
    )
    move = "UPDATE metering_rolluppointer SET run_id = {id} WHERE day = '{day}'"
    run(insert.format(id=old, state="published", at="interval '1 hour'"), "*")
    run(insert.format(id=new, state="published", at="interval '2 hours'"), "*")
    run(insert.format(id="'run_failed'", state="failed", at="interval '3 hours'"), "*")
    assert run(move.format(id=new, day="2026-09-01"), "*") == 1
    for identity, day in ((old, "2026-09-01"), ("'run_failed'", "2026-09-01"), (new, "2026-09-02")):
        with pytest.raises(DatabaseError, match="a pointer is refused"), transaction.atomic():
            run(move.format(id=identity, day=day), "*")

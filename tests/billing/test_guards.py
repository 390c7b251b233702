"""PostgreSQL itself refuses to change money, whoever asks."""

import pytest
from django.db import DatabaseError, connections, transaction

from billing.models import Invoice, JournalEntry, Posting
from console.base.common.tenancy import organization_scope
from tests.billing.world import invoices_of, issue_invoices

REFUSED = r"never changes|permission denied|gets no line|is refused"
STATEMENTS = [
    "UPDATE billing_invoice SET total_minor = 0, subtotal_minor = 0, tax_minor = 0",
    "UPDATE billing_invoice SET state = 'draft'",
    "UPDATE billing_invoice SET number = 'FR-2026-000009'",
    "DELETE FROM billing_invoice",
    "UPDATE billing_invoiceline SET amount_minor = 0",
    "DELETE FROM billing_invoiceline",
    "INSERT INTO billing_invoiceline (id, organization_id, invoice_id, position, kind, meter,"
    " cluster_id, cluster, description, price_unit, amount_minor, tax_category)"
    " SELECT 'inl_x', organization_id, id, 99, 'usage', '', '', '', 'x', '', 0, 'O'"
    " FROM billing_invoice",
    "UPDATE billing_posting SET amount_minor = 0",
    "DELETE FROM billing_posting",
    "UPDATE billing_journalentry SET currency = 'EUR'",
    "DELETE FROM billing_journalentry",
    "UPDATE billing_usagebasis SET runs = '{}'",
    "DELETE FROM billing_usagebasis",
]


def run(statement, organization_id, alias="default"):
    """One statement in its own transaction, within the scope of all organizations."""
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute("SELECT set_config('freshet.organization', %s, true)", [organization_id])
        cursor.execute(statement)
        return cursor.rowcount


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_serving_role_changes_nothing_that_is_issued(used, statement):
    issue_invoices()
    with pytest.raises(DatabaseError, match=REFUSED):
        run(statement, used.id)


@pytest.mark.django_db(databases=["default", "owner"], transaction=True)
def test_nor_does_the_owner_of_the_tables(transactional_db, used):
    issue_invoices()
    for statement in STATEMENTS:
        with pytest.raises(DatabaseError, match=REFUSED):
            run(statement, used.id, alias="owner")
    (invoice,) = invoices_of(used.id)
    assert (invoice.total_minor, invoice.lines.count()) == (180, 4)


def test_an_invoice_begins_as_a_draft(used):
    issue_invoices()
    (invoice,) = invoices_of(used.id)
    invoice.pk, invoice.number, invoice.sequence, invoice.revision = "inv_x", "X-1", 99, 9
    with (
        organization_scope(used.id),
        pytest.raises(DatabaseError, match="begins as a draft"),
        transaction.atomic(),
    ):
        invoice.save(force_insert=True)


def test_a_draft_whose_lines_do_not_sum_to_it_is_not_issued(used):
    issue_invoices(draft=True)
    (draft,) = invoices_of(used.id)
    draft.lines.all()
    wrong = "UPDATE billing_invoiceline SET amount_minor = amount_minor + 1 WHERE position = 1"
    assert run(wrong, used.id) == 1
    with organization_scope(used.id), transaction.atomic():
        issued = {"state": "issued", "number": "X-1", "issued_at": draft.created_at}
        with pytest.raises(DatabaseError, match="sum to 181"), transaction.atomic():
            Invoice.objects.filter(pk=draft.pk).update(**issued)


def entry(organization_id, amounts, *, count=None, of=None):
    """An entry with postings, for an invoice that has none."""
    (invoice,) = invoices_of(organization_id)
    row = JournalEntry.objects.create(
        organization_id=organization_id,
        kind="invoice",
        invoice=invoice,
        currency="USD",
        posting_count=len(amounts) if count is None else count,
    )
    Posting.objects.bulk_create(
        Posting(
            organization_id=of or organization_id,
            entry=row,
            account="revenue",
            amount_minor=amount,
        )
        for amount in amounts
    )


@pytest.mark.parametrize(
    ("amounts", "options", "why"),
    [
        ([5, -4], {}, "sum to 1, not to 0"),
        ([5, -5], {"count": 3}, "has 2 postings, not 3"),
        ([5, -5, 0], {"count": 2}, "has 3 postings, not 2"),
        ([0], {}, "has 1 postings"),
        ([], {}, "has 0 postings"),
        ([5, -5], {"of": "org_aaaaaaaaaaaaaaaaaaaa"}, "row-level security"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_an_entry_out_of_balance_is_not_committed(used, amounts, options, why):
    """The check runs at the commit, when the scope has ended: it must see the rows all the same."""
    issue_invoices(draft=True)
    with pytest.raises(DatabaseError, match=why), organization_scope(used.id):
        entry(used.id, amounts, **options)
    with organization_scope(used.id):
        assert not JournalEntry.objects.exists()
        entry(used.id, [5, -5])


@pytest.mark.django_db(transaction=True)
def test_no_posting_is_added_later(used):
    issue_invoices()
    with organization_scope(used.id):
        known = JournalEntry.objects.get()
    pair = [
        Posting(organization_id=used.id, entry=known, account="revenue", amount_minor=amount)
        for amount in (7, -7)
    ]
    with pytest.raises(DatabaseError, match="has 4 postings, not 2"), organization_scope(used.id):
        Posting.objects.bulk_create(pair)
    with organization_scope(used.id):
        assert sum(Posting.objects.values_list("amount_minor", flat=True)) == 0
        assert Posting.objects.count() == 2

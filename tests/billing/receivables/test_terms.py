"""What the PDF and the mail say of how an invoice is paid."""

from datetime import timedelta

import pytest
from django.core import mail

from billing.content import invoice_content
from billing.money import readable_amount
from billing.pdf.render import content_sha256, render_html, render_pdf
from billing.receivables.services import grant_credit, terms_of
from billing.services import documents, mailing
from billing.services.mailing import mail_text
from billing.services.voiding import void_invoice
from console.base.common.tenancy import organization_scope
from tests.billing.receivables.test_payments import pay
from tests.billing.test_documents import read, text_of
from tests.billing.world import invoices_of, issue_invoices


@pytest.fixture
def issue(used, owner):
    """Issues the month; returns the invoice."""

    def issue():
        issue_invoices()
        return invoices_of(owner)[0]

    return issue


def mailed(invoice):
    with organization_scope(invoice.organization_id):
        return mail_text(invoice)[1]


def test_a_transfer_names_account_reference_and_day(issue, collector):
    collector("transfer")
    invoice = issue()
    documents.sweep_documents()
    mailing.sweep_mails()
    text = text_of(read(invoice))
    (message,) = mail.outbox
    reference = said_of(invoice).reference
    for said in ("$1.80", "18 October 2026", "IBAN DE02 1203 0000 0000 2020 51", reference):
        assert said in text
        assert said in message.body
    assert reference.replace(" ", "").endswith("FR2026000001")


def said_of(invoice):
    with organization_scope(invoice.organization_id):
        return terms_of(invoice)


def test_a_card_is_charged(issue, collector):
    collector("stripe")
    invoice = issue()
    text = mailed(invoice)
    total = readable_amount(invoice.total_minor, "USD")
    assert f"{total} is to be paid by 18 October 2026; it is charged to your card, if you" in text
    assert "IBAN" not in text


def test_without_a_collector_nothing_is_said(issue):
    invoice = issue()
    assert said_of(invoice) is None
    assert "Please" not in mailed(invoice)
    assert "Payment" not in render_html(invoice_content(invoice))


def test_credit_is_named_and_nothing_may_be_left(used, issue, collector, clock):
    collector("transfer")
    with organization_scope(used.id):
        grant_credit(
            organization_id=used.id, amount_minor=80, currency="USD", reason="x", by="tests"
        )
    invoice = issue()
    terms = said_of(invoice)
    assert (terms.credit, terms.payable) == ("$0.80", "$1.00")
    assert "$0.80 of it is paid by your credit.\nPlease transfer $1.00 by" in mailed(invoice)
    # What is paid later does not change what was printed at issue.
    clock.now += timedelta(days=1)
    pay(used.id, 100)
    assert said_of(invoice) == terms


def test_all_of_it_may_be_paid_by_credit(used, issue, collector):
    collector("transfer")
    pay(used.id, 500)
    invoice = issue()
    text = mailed(invoice)
    assert "Nothing is left to pay." in text
    assert "IBAN" not in text
    page = render_html(invoice_content(invoice), said_of(invoice).as_json())
    assert "Nothing is left to pay." in page


def test_a_credit_note_is_not_to_be_paid(issue, collector):
    collector("transfer")
    invoice = issue()
    void_invoice(invoice_id=invoice.pk, reason="wrong", by="tests")
    note = invoices_of(invoice.organization_id)[-1]
    assert note.kind == "credit_note"
    assert said_of(note) is None


def test_terms_are_no_part_of_the_content(issue, collector):
    collector("transfer")
    invoice = issue()
    content = invoice_content(invoice)
    terms = said_of(invoice).as_json()
    assert content_sha256(content) in render_html(content, terms)
    assert not set(terms) & set(content)
    once = render_pdf(content, terms)
    assert once == render_pdf(content, terms)
    assert once != render_pdf(content)

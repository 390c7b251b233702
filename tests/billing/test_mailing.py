"""The mail of an invoice: what it says, to whom, once, and when."""

import smtplib
from datetime import timedelta

import pytest
from django.core import mail

from billing.mails import send_mail
from billing.models import BillingDetails, InvoiceMail
from billing.services import documents, mailing, numbers
from billing.services.store import document_store
from billing.services.voiding import void_invoice
from billing.tasks import make_document, sweep_documents
from console.base.accounts.models import Membership
from console.base.common.actor import Role
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing import world
from tests.billing.world import invoices_of, issue_invoices
from tests.console.outbox import run_outbox

pytestmark = pytest.mark.django_db


@pytest.fixture
def invoice(used):
    """An issued invoice."""
    issue_invoices()
    return invoices_of(used.id)[0]


def sent_at(invoice):
    with organization_scope(invoice.organization_id):
        return InvoiceMail.objects.get(pk=invoice.pk).sent_at


def arguments(invoice):
    return {"organization_id": invoice.organization_id, "invoice_id": invoice.pk}


def test_an_issued_invoice_is_announced_by_mail(invoice, used, settings):
    numbers.confirm_blocks(document_store())
    assert run_outbox() == ["billing.make_document"]
    (message,) = mail.outbox
    assert message.subject == "Invoice FR-2026-000001 for September 2026: $1.80"
    assert message.to == [used.owner.email]
    assert "The invoice FR-2026-000001 for September 2026 is issued. Its total is $1.80." in (
        message.body
    )
    assert f"{settings.FRESHET.web.public_url}/invoices/{invoice.pk}" in message.body
    assert "$0.40" in message.body
    assert sent_at(invoice) is not None


def test_it_waits_until_people_can_read_the_invoice(invoice):
    assert mailing.sweep_mails() == 0
    documents.sweep_documents()
    assert mailing.sweep_mails() == 1
    assert len(mail.outbox) == 1


def test_a_task_that_repeats_sends_nothing_again(invoice):
    documents.sweep_documents()
    for _ in range(3):
        make_document.apply(kwargs=arguments(invoice), throw=True)
        sweep_documents.apply(throw=True)
    assert len(mail.outbox) == 1
    (message,) = mail.outbox
    assert message.extra_headers["Message-ID"].startswith(f"<{invoice.pk}@")


def test_it_goes_to_the_address_of_the_billing_details(invoice):
    with organization_scope(invoice.organization_id):
        BillingDetails.objects.create(
            organization_id=invoice.organization_id, email="invoices@acme.example"
        )
    documents.sweep_documents()
    mailing.sweep_mails()
    assert [message.to for message in mail.outbox] == [["invoices@acme.example"]]


def test_without_anybody_who_looks_after_money_nothing_is_sent(invoice):
    with organization_scope(invoice.organization_id):
        Membership.objects.filter(organization_id=invoice.organization_id).update(
            role=Role.VIEWER.value
        )
    documents.sweep_documents()
    assert mailing.sweep_mails() == 0
    assert mail.outbox == []
    with organization_scope(invoice.organization_id):
        assert InvoiceMail.objects.get(pk=invoice.pk).recipients == 0


def test_a_mail_server_that_is_away_keeps_no_other_mail_waiting(
    used, other_tenant, clock, monkeypatch
):
    world.sign_up(other_tenant.organization)
    issue_invoices()
    documents.sweep_documents()

    def refuses_first(*, to, **mail):
        if to == [used.owner.email]:
            raise smtplib.SMTPRecipientsRefused({})
        send_mail(to=to, **mail)

    monkeypatch.setattr("billing.services.mailing.send_mail", refuses_first)
    assert mailing.sweep_mails() == 1
    assert mailing.sweep_mails() == 0
    assert [message.to for message in mail.outbox] == [[other_tenant.owner.email]]
    monkeypatch.setattr("billing.services.mailing.send_mail", send_mail)
    assert mailing.sweep_mails() == 0
    clock.now += timedelta(minutes=11)
    assert mailing.sweep_mails() == 1
    assert mail.outbox[1].to == [used.owner.email]


def test_an_address_that_no_mail_can_be_written_to_keeps_no_other_mail_waiting(
    used, other_tenant, clock
):
    world.sign_up(other_tenant.organization)
    issue_invoices()
    with organization_scope(used.id):
        BillingDetails.objects.create(organization_id=used.id, email="a@acme.example\nBcc: b@c.d")
    documents.sweep_documents()
    assert mailing.sweep_mails() == 1
    assert [message.to for message in mail.outbox] == [[other_tenant.owner.email]]
    with organization_scope(used.id):
        due = InvoiceMail.objects.get(organization_id=used.id)
    assert (due.sent_at, due.failed_at) == (None, clock.now)


def test_a_credit_note_says_what_it_takes_back(invoice):
    documents.sweep_documents()
    void_invoice(invoice_id=invoice.pk, reason="wrong address", by="tests")
    documents.sweep_documents()
    assert mailing.sweep_mails() == 2
    (note,) = [message for message in mail.outbox if message.subject.startswith("Credit note")]
    assert "over $1.80" in note.subject
    assert "takes back the invoice FR-2026-000001 for September 2026" in note.body


def test_invoices_from_before_get_no_mail(invoice):
    with system_scope():
        InvoiceMail.objects.all().delete()
    documents.sweep_documents()
    assert mailing.sweep_mails() == 0
    assert not mailing.send_invoice_mail(**arguments(invoice))

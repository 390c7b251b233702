"""Announces each invoice and credit note by mail, once, as soon as people can look at it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from billing.choices import InvoiceKind
from billing.mails import send_mail
from billing.models import BillingDetails, Invoice, InvoiceMail
from billing.money import readable_amount
from billing.receivables.services import terms_of
from console.base.accounts.services import billing_addresses
from console.base.common import locks
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.mail_names import unlinked
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import task_transaction

logger = logging.getLogger(__name__)

# A sweep ends after this time or number, so that the worker is free; the next one continues.
SWEEP_S_MAX = 20.0
SWEEP_MAILS_MAX = 200
INVOICE = """\
The invoice {number} for {month} is issued. Its total is {total}.

{lines}{terms}
With its PDF and the evidence that recomputes it:

{link}
"""
CREDIT_NOTE = """\
The credit note {number} over {total} takes back the invoice {credits} for {month}.

{link}
"""
LINES_MAX = 20


def note_mails(invoices: Iterable[Invoice]) -> None:
    """Notes, in the issuing transaction, that each of these invoices is to be mailed."""
    InvoiceMail.objects.bulk_create(
        InvoiceMail(invoice=invoice, organization_id=invoice.organization_id)
        for invoice in invoices
    )


def send_invoice_mail(*, organization_id: str, invoice_id: str) -> bool:
    """Sends the mail of an invoice, if it is due; returns whether it did.

    It goes to the address in the billing details, else to the members with the permission
    `billing`. The sender holds a lock, so two senders at a time send one mail. Only where a process
    dies between the mail server's answer and its commit is a second mail sent, with the Message-ID
    of the first.

    Raises `OSError` where the mail server cannot be reached.
    """
    with task_transaction(), organization_scope(organization_id):
        if not locks.try_lock("invoice_mail", invoice_id):
            return False
        due = InvoiceMail.objects.due(now())
        mail = due.filter(pk=invoice_id, organization_id=organization_id).first()
        if mail is None:
            return False
        invoice = Invoice.objects.select_related("credits").get(pk=invoice_id)
        addresses = _addresses_of(organization_id)
        if addresses:
            subject, text = mail_text(invoice)
            send_mail(subject=subject, text=text, to=addresses, key=invoice.pk)
        mail.sent_at, mail.recipients = now(), len(addresses)
        mail.save(update_fields=["sent_at", "recipients"])
    return bool(addresses)


def sweep_mails() -> int:
    """Sends due mails for a while; returns how many."""
    with system_scope():
        mails = InvoiceMail.objects.due(now()).order_by("invoice__issued_at", "pk")
        due = list(mails.values_list("organization_id", "pk")[:SWEEP_MAILS_MAX])
    deadline = time.monotonic() + SWEEP_S_MAX
    sent = 0
    for organization_id, invoice_id in due:
        if time.monotonic() > deadline:
            break
        sent += try_invoice_mail(organization_id=organization_id, invoice_id=invoice_id)
    return sent


def try_invoice_mail(*, organization_id: str, invoice_id: str) -> bool:
    """Like `send_invoice_mail`, but notes a failure, and a sweep tries again some minutes later.

    So an address that is refused does not hold up the mails of others.
    """
    try:
        return send_invoice_mail(organization_id=organization_id, invoice_id=invoice_id)
    except Exception:
        # Every kind of error counts: an impossible address, for example, raises `ValueError`.
        logger.exception("The mail of %s could not be sent", invoice_id)
    with organization_scope(organization_id):
        ours = InvoiceMail.objects.filter(organization_id=organization_id)
        ours.filter(pk=invoice_id, sent_at=None).update(failed_at=now())
    return False


def mail_text(invoice: Invoice) -> tuple[str, str]:
    """Subject and text of an invoice's mail."""
    total = readable_amount(abs(invoice.total_minor), invoice.currency)
    month = f"{invoice.month:%B %Y}"
    facts = {
        "number": invoice.number,
        "month": month,
        "total": total,
        "link": f"{config().web.public_url}/invoices/{invoice.pk}",
    }
    if invoice.kind == InvoiceKind.CREDIT_NOTE:
        credited = invoice.credits.number if invoice.credits else ""
        subject = f"Credit note {invoice.number} over {total}"
        return subject, CREDIT_NOTE.format(**facts, credits=credited)
    terms = terms_of(invoice)
    return f"Invoice {invoice.number} for {month}: {total}", INVOICE.format(
        **facts,
        lines=_lines_text(invoice),
        terms="" if terms is None else f"\n{terms.text()}\n",
    )


def _lines_text(invoice: Invoice) -> str:
    """The first `LINES_MAX` lines with an amount, as the mail lists them."""
    lines = list(invoice.lines.exclude(amount_minor=0).order_by("position"))
    shown = [
        f"  {unlinked(line.description)}: {readable_amount(line.amount_minor, invoice.currency)}\n"
        for line in lines[:LINES_MAX]
    ]
    more = len(lines) - len(shown)
    return "".join([*shown, f"  and {more} more lines\n" if more else ""])


def _addresses_of(organization_id: str) -> list[str]:
    details = BillingDetails.objects.filter(pk=organization_id).first()
    if details is not None and details.email:
        return [details.email]
    return billing_addresses(organization_id=organization_id)

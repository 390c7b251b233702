"""Tells people of each invoice and credit note by mail, once, as soon as they can look at it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from billing.choices import InvoiceKind
from billing.mails import send
from billing.models import BillingDetails, Invoice, InvoiceMail
from billing.money import readable
from console.base.accounts.services import billing_addresses
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope

logger = logging.getLogger(__name__)

# Workers have other things to do: the next sweep goes on.
SWEEP_S_MAX = 20.0
SWEEP_MAILS_MAX = 200
INVOICE = """\
The invoice {number} for {month} is issued. Its total is {total}.

{lines}
With its PDF and the evidence that recomputes it:

{link}
"""
CREDIT_NOTE = """\
The credit note {number} over {total} takes back the invoice {credits} for {month}.

{link}
"""
LINES_MAX = 20


def note_mails(invoices: Iterable[Invoice]) -> None:
    """Notes in the issuing transaction that a mail is due of each of them."""
    InvoiceMail.objects.bulk_create(
        InvoiceMail(invoice=invoice, organization_id=invoice.organization_id)
        for invoice in invoices
    )


def send_invoice_mail(*, organization_id: str, invoice_id: str) -> bool:
    """Sends the mail of an invoice, if it is due; tells whether it did.

    It goes to the billing details' address, else to the members who look after money. Whoever sends
    holds its row, so two at a time send one; only where a process dies between the mail server's
    answer and its own commit does a second one go out, with the first one's Message-ID.

    Raises `OSError` where the mail server cannot be reached.
    """
    with organization_scope(organization_id):
        due = InvoiceMail.objects.due(now()).select_for_update(of=("self",), skip_locked=True)
        mail = due.filter(pk=invoice_id, organization_id=organization_id).first()
        if mail is None:
            return False
        invoice = Invoice.objects.select_related("credits").get(pk=invoice_id)
        addresses = _addresses(organization_id)
        if addresses:
            subject, text = mail_text(invoice)
            send(subject=subject, text=text, to=addresses, key=invoice.pk)
        mail.sent_at, mail.recipients = now(), len(addresses)
        mail.save(update_fields=["sent_at", "recipients"])
    return bool(addresses)


def sweep_mails() -> int:
    """Sends mails that are due, for a while; gives how many."""
    with system_scope():
        found = InvoiceMail.objects.due(now()).order_by("invoice__issued_at", "pk")
        due = list(found.values_list("organization_id", "pk")[:SWEEP_MAILS_MAX])
    deadline = time.monotonic() + SWEEP_S_MAX
    sent = 0
    for organization_id, invoice_id in due:
        if time.monotonic() > deadline:
            break
        sent += try_invoice_mail(organization_id=organization_id, invoice_id=invoice_id)
    return sent


def try_invoice_mail(*, organization_id: str, invoice_id: str) -> bool:
    """As `send_invoice_mail`; one that fails is tried again by a sweep, some minutes later.

    So an address that is refused keeps no mail behind it waiting.
    """
    try:
        return send_invoice_mail(organization_id=organization_id, invoice_id=invoice_id)
    except Exception:
        # Whatever it is: an address that no mail can be written to is a `ValueError`, for one.
        logger.exception("The mail of %s could not be sent", invoice_id)
    with organization_scope(organization_id):
        ours = InvoiceMail.objects.filter(organization_id=organization_id)
        ours.filter(pk=invoice_id, sent_at=None).update(failed_at=now())
    return False


def mail_text(invoice: Invoice) -> tuple[str, str]:
    """Subject and text of an invoice's mail."""
    total = readable(abs(invoice.total_minor), invoice.currency)
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
    return f"Invoice {invoice.number} for {month}: {total}", INVOICE.format(
        **facts, lines=_lines(invoice)
    )


def _lines(invoice: Invoice) -> str:
    """The lines that cost something, the first of them."""
    found = list(invoice.lines.exclude(amount_minor=0).order_by("position"))
    shown = [
        f"  {line.description}: {readable(line.amount_minor, invoice.currency)}\n"
        for line in found[:LINES_MAX]
    ]
    more = len(found) - len(shown)
    return "".join([*shown, f"  and {more} more lines\n" if more else ""])


def _addresses(organization_id: str) -> list[str]:
    details = BillingDetails.objects.filter(pk=organization_id).first()
    if details is not None and details.email:
        return [details.email]
    return billing_addresses(organization_id=organization_id)

"""Takes an issued invoice back by a credit note, because the invoice itself may never change."""

from __future__ import annotations

from decimal import Decimal

from billing.choices import InvoiceKind, InvoiceState
from billing.drafts import Draft, DraftLine, credit_lines
from billing.errors import AlreadyVoid, NotIssued
from billing.models import Invoice, InvoiceLine
from billing.parties import Party, Tax
from billing.services import numbers
from billing.services.writing import Written, issue_drafts
from console.base.common.clock import now
from console.base.common.errors import NotFound
from console.base.common.tenancy import system_scope
from console.base.common.transactions import task_transaction


def void_invoice(*, invoice_id: str, reason: str, by: str) -> Written:
    """Issues the credit note of an invoice: the same lines with the sign of each amount changed.

    Raises `NotFound`, `NotIssued` for a draft, and `AlreadyVoid` for a void invoice and a credit
    note.
    """
    with task_transaction(), system_scope():
        at = now()
        series = numbers.lock_series(numbers.series_of(InvoiceKind.CREDIT_NOTE, at))
        invoice = Invoice.objects.filter(pk=invoice_id).first()
        if invoice is None:
            raise NotFound
        if invoice.state != InvoiceState.ISSUED:
            raise NotIssued
        if invoice.kind != InvoiceKind.INVOICE:
            message = "A credit note cannot be taken back."
            raise AlreadyVoid(message)
        if Invoice.objects.filter(credits=invoice).exists():
            raise AlreadyVoid
        (written,) = issue_drafts([_credit_note(invoice, reason)], series=series, at=at, by=by)
    return written


def _credit_note(invoice: Invoice, reason: str) -> Draft:
    lines = [draft_line(row) for row in invoice.lines.order_by("position")]
    return Draft(
        organization_id=invoice.organization_id,
        kind=InvoiceKind.CREDIT_NOTE.value,
        month=invoice.month,
        revision=invoice.revision,
        price_version=invoice.price_version_id,
        basis_id=invoice.basis_id,
        currency=invoice.currency,
        seller=party_of(invoice.seller),
        customer=party_of(invoice.customer),
        tax=Tax(
            category=invoice.tax["category"],
            percent=Decimal(invoice.tax["percent"]),
            reason=invoice.tax["reason"],
        ),
        lines=credit_lines(lines),
        cap_minor=invoice.cap_minor,
        allowance=invoice.allowance,
        rounding=invoice.rounding,
        credits_id=invoice.pk,
        reason=reason,
    )


def party_of(stored: dict[str, object]) -> Party:
    """A party from the JSON that an invoice keeps."""
    return Party(**{**stored, "address": tuple(stored["address"])})  # type: ignore[arg-type]


def draft_line(row: InvoiceLine) -> DraftLine:
    """The draft of an invoice's line."""
    return DraftLine(
        kind=row.kind,
        description=row.description,
        amount_minor=row.amount_minor,
        meter=row.meter,
        cluster_id=row.cluster_id,
        cluster=row.cluster,
        quantity=None if row.quantity is None else int(row.quantity),
        free_quantity=None if row.free_quantity is None else int(row.free_quantity),
        unit_price=row.unit_price,
        price_unit=row.price_unit,
        price_unit_size=row.price_unit_size,
    )

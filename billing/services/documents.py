"""PDFs of invoices: rendered once, kept in the object store, with their hash in the database."""

from __future__ import annotations

import hashlib
import logging
import time

from billing.content import invoice_content
from billing.errors import DocumentDamaged, DocumentPending, NotIssued
from billing.models import Invoice, InvoiceDocument
from billing.pdf.render import render_pdf
from billing.receivables.services import terms_of
from billing.services import numbers
from billing.services.store import document_store
from console.base.common.tenancy import organization_scope, system_scope

logger = logging.getLogger(__name__)

# A sweep ends after this time or number, so that the worker is free; the next one continues.
SWEEP_S_MAX = 20.0
SWEEP_INVOICES_MAX = 200


def make_document(*, organization_id: str, invoice_id: str) -> None:
    """Makes the PDF of an issued invoice, if it is still to be made.

    Rendering takes long and holds no transaction. Two workers at once do no harm: the first
    one's PDF is kept.
    """
    with organization_scope(organization_id):
        invoices = Invoice.objects.for_organization(organization_id).without_document()
        invoice = invoices.filter(pk=invoice_id).select_related("basis", "credits").first()
        if invoice is None:
            return
        content, terms = invoice_content(invoice), terms_of(invoice)
    pdf = render_pdf(content, None if terms is None else terms.as_json())
    store_document(organization_id=organization_id, invoice_id=invoice_id, pdf=pdf)


def store_document(*, organization_id: str, invoice_id: str, pdf: bytes) -> InvoiceDocument:
    """Stores a PDF, or takes the one that is already stored; returns its row."""
    store = document_store()
    key = f"v1/invoices/{invoice_id}.pdf"
    if not store.put_new(key, pdf):
        pdf = store.get(key)
    with organization_scope(organization_id):
        row, _ = InvoiceDocument.objects.get_or_create(
            invoice_id=invoice_id,
            defaults={
                "organization_id": organization_id,
                "key": key,
                "sha256": hashlib.sha256(pdf).hexdigest(),
                "size_bytes": len(pdf),
            },
        )
    return row


def read_document(invoice: Invoice) -> bytes:
    """The stored PDF.

    Raises `NotIssued` for a draft, `DocumentPending` before the PDF is made, and
    `DocumentDamaged` where the stored bytes are missing or differ from their hash.
    """
    if invoice.issued_at is None:
        raise NotIssued
    row = InvoiceDocument.objects.filter(pk=invoice.pk).first()
    if row is None:
        raise DocumentPending(retry_after_s=5)
    try:
        pdf = document_store().get(row.key)
    except OSError as error:
        raise DocumentDamaged from error
    if hashlib.sha256(pdf).hexdigest() != row.sha256:
        raise DocumentDamaged
    return pdf


def sweep_documents() -> int:
    """Confirms blocks of numbers that are not confirmed yet, then makes PDFs for a while; returns
    how many. Numbers come first, because an invoice gets its PDF only once they are confirmed."""
    try:
        numbers.confirm_blocks(document_store())
    except Exception:
        # A person must look into it. PDFs of invoices whose numbers are recorded are still made.
        logger.exception("Numbers of invoices cannot be put on record")
    with system_scope():
        waiting = list(
            Invoice.objects.without_document()
            .order_by("issued_at", "pk")
            .values_list("organization_id", "pk")[:SWEEP_INVOICES_MAX]
        )
    deadline = time.monotonic() + SWEEP_S_MAX
    count = 0
    for organization_id, invoice_id in waiting:
        if time.monotonic() > deadline:
            break
        try:
            make_document(organization_id=organization_id, invoice_id=invoice_id)
        except Exception:
            # An invoice that cannot be rendered must not hold up the others.
            logger.exception("The document of %s could not be made", invoice_id)
        else:
            count += 1
    return count

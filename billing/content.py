"""The content of an issued invoice as one JSON-like document, from which its PDF and its evidence
pack are made."""

from __future__ import annotations

from typing import Any

from billing.catalog import BASE_UNITS
from billing.choices import Rounding
from billing.models import Invoice, InvoiceLine
from billing.money import price_text

VERSION = 1


def invoice_content(invoice: Invoice) -> dict[str, Any]:
    """The invoice with its lines. Amounts are whole minor units, quantities whole base units.

    The keys are part of the evidence pack, which `billing/evidence/recompute.py` reads.
    """
    credited = invoice.credits
    # Only where there is one: the content of other invoices stays as it was printed.
    given: dict[str, Any] = {}
    if invoice.allowance is not None:
        given["allowance"] = invoice.allowance
    if invoice.rounding != Rounding.LINE:
        given["rounding"] = invoice.rounding
    return {
        "version": VERSION,
        "id": invoice.pk,
        "kind": invoice.kind,
        "number": invoice.number,
        "organization_id": invoice.organization_id,
        "month": f"{invoice.month:%Y-%m}",
        "revision": invoice.revision,
        "issued_at": None if invoice.issued_at is None else invoice.issued_at.isoformat(),
        "currency": invoice.currency,
        "seller": invoice.seller,
        "customer": invoice.customer,
        "tax": invoice.tax,
        "price_version": invoice.price_version_id,
        "usage_basis": {"id": invoice.basis_id, "runs": invoice.basis.runs},
        "cap_minor": invoice.cap_minor,
        "closed_early": invoice.closed_early,
        "credits": None if credited is None else {"id": credited.pk, "number": credited.number},
        "reason": invoice.reason,
        "lines": [_line(line) for line in invoice.lines.all()],
        "subtotal_minor": invoice.subtotal_minor,
        "tax_minor": invoice.tax_minor,
        "total_minor": invoice.total_minor,
        **given,
    }


def _line(line: InvoiceLine) -> dict[str, Any]:
    return {
        "id": line.pk,
        "position": line.position,
        "kind": line.kind,
        "meter": line.meter,
        "cluster_id": line.cluster_id,
        "cluster": line.cluster,
        "description": line.description,
        "unit": BASE_UNITS.get(line.meter, ""),
        "quantity": None if line.quantity is None else int(line.quantity),
        "free_quantity": None if line.free_quantity is None else int(line.free_quantity),
        "unit_price": None if line.unit_price is None else price_text(line.unit_price),
        "price_unit": line.price_unit,
        "price_unit_size": line.price_unit_size,
        "amount_minor": line.amount_minor,
        "tax_category": line.tax_category,
    }

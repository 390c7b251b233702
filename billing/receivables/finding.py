"""Finds what somebody pays for by what a bank statement names."""

from __future__ import annotations

from django.db.models import Q

from billing.models import Receivable
from billing.receivables.references import parse_reference
from console.base.common.errors import NotFound


def find_receivable(text: str) -> Receivable:
    """The receivable of a transfer's reference, an invoice number or an invoice id.

    In the caller's scope. Raises `NotFound`, which says where a reference has a wrong digit.
    """
    named = text.strip()
    known = Q(pk=named) | Q(invoice__number__in=[named, named.upper()])
    message = f"Nothing is owed under {named}."
    try:
        known |= Q(reference=parse_reference(named))
    except ValueError as error:
        if named.upper().startswith("RF"):
            message = f"{error}."
    receivable = Receivable.objects.filter(known).select_related("invoice").first()
    if receivable is None:
        raise NotFound(message)
    return receivable

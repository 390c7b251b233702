"""Whom an organization's invoices are addressed to."""

from __future__ import annotations

from typing import Any

from billing.countries import country_complaint, vat_id_complaint
from billing.models import BillingDetails
from billing.services.missing import try_soon
from console.base.common.actor import Actor
from console.base.common.audit import changes_of, record_audit
from console.base.common.clock import now
from console.base.common.errors import FieldError, ValidationFailed


def billing_details(organization_id: str, *, lock: bool = False) -> BillingDetails:
    """An organization's details; unsaved, empty ones of generation 1 where nobody entered any."""
    details = BillingDetails.objects.filter(pk=organization_id)
    if lock:
        details = details.select_for_update()
    return details.first() or BillingDetails(organization_id=organization_id)


def update_billing_details(
    *, actor: Actor, details: BillingDetails, changes: dict[str, Any]
) -> BillingDetails:
    """Changes the details for the next invoices. Issued invoices keep their own copy.

    Raises `ValidationFailed` for a country that is none, and a VAT id that cannot be one of the
    country. What was entered before these were checked stays until either is changed.

    Invoices that are missing are tried again by the next run, as the old details may be the reason.
    """
    changed = {name: value for name, value in changes.items() if getattr(details, name) != value}
    if changed.keys() & {"country", "vat_id"}:
        country = changes.get("country", details.country)
        _require_taxable(country, changes.get("vat_id", details.vat_id))
    detail = changes_of(details, changed)
    for name, value in changes.items():
        setattr(details, name, value)
    details.generation += 1
    details.updated_at = now()
    details.save()
    try_soon(details.pk)
    record_audit(
        actor=actor,
        action="billing_details.update",
        target_type="organization",
        target_id=details.pk,
        detail=detail,
    )
    return details


def _require_taxable(country: str, vat_id: str) -> None:
    for pointer, complaint in (
        ("/country", country_complaint(country)),
        ("/vat_id", vat_id_complaint(country, vat_id)),
    ):
        if complaint:
            raise ValidationFailed(complaint, errors=[FieldError(pointer, "invalid", complaint)])

"""Billing's receivers of signals. They write rows and outbox entries, nothing else."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from billing.models import PriceVersion
from console.base.common.actor import Actor
from console.base.common.outbox import enqueue_task

FINAL_INVOICE = "billing.issue_final_invoice"


def follow_closing(*, actor: Actor, **_: object) -> None:
    """Enqueues the last invoice of a closed organization.

    Where usage is still on its way, `billing.issue_final_invoices` issues the invoice later.
    """
    enqueue_task(
        task=FINAL_INVOICE,
        organization_id=actor.organization_id,
        arguments={"organization_id": actor.organization_id},
    )


def check_prices(*, using: str, **_: object) -> None:
    """Ends a migration that left prices by which no invoice could be made.

    Prices come by migrations alone and never change, so that no month meets such a fault. Raises
    `ImproperlyConfigured`, which names the version.
    """
    if PriceVersion._meta.db_table not in connections[using].introspection.table_names():
        return  # an earlier state of the tables was migrated to
    for version in PriceVersion.objects.using(using).prefetch_related("prices"):
        faults = version.catalog().faults()
        if faults:
            message = f"the price version {version.pk} cannot be used: {'; '.join(faults)}"
            raise ImproperlyConfigured(message)

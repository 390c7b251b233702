"""Months of usage that a running service never had, so that its invoices have amounts.

Run in a process of its own with the service's settings: `bookkeeping.use_month` does so.
"""

from __future__ import annotations

from datetime import date

from console.base.accounts.models import Organization
from console.base.common.tenancy import organization_scope
from tests.billing.world import publish_month, sign_up, usual_usage


def use_month(organization_id: str, month: str) -> None:
    """Publishes a month (`YYYY-MM`) in which the organization used something of a cluster."""
    with organization_scope(organization_id):
        organization = Organization.objects.get()
        cluster_id = organization.clusters.values_list("pk", flat=True).get()
    sign_up(organization)
    publish_month(usual_usage(organization_id, cluster_id), date.fromisoformat(f"{month}-01"))

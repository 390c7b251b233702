"""Months of usage and their invoices, for tests."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, date, datetime, timedelta

from billing.catalog import GIB
from billing.models import BillingDetails, Invoice
from billing.periods import minutes_of, next_month
from billing.services import numbers
from billing.services.issuing import IssueReport, issue_month
from billing.services.store import document_store
from console.base.accounts.models import Organization, Project
from console.base.common.tenancy import organization_scope, system_scope
from provisioning.models import Cell, Cluster
from tests.metering.console.world import Used, make_hours_complete, publish_day

MONTH = date(2026, 9, 1)
MINUTES = minutes_of(MONTH)
# When MONTH can be invoiced.
AFTER = datetime(2026, 10, 4, 1, tzinfo=UTC)
TOPIC = "fedcba9876543210fedcba9876543210"


def days_of(month: date = MONTH) -> list[date]:
    """Each day of a month."""
    return [month + timedelta(days=n) for n in range((next_month(month) - month).days)]


def make_cluster(organization_id: str, cluster_id: str, name: str) -> str:
    """A cluster's row without a real cluster; every hour of it in `MONTH` is complete."""
    start = datetime(MONTH.year, MONTH.month, 1, tzinfo=UTC)
    cell, _ = Cell.objects.get_or_create(id="local", defaults={"region": "local"})
    with organization_scope(organization_id):
        Cluster.objects.create(
            id=cluster_id,
            organization_id=organization_id,
            project=Project.objects.get(organization_id=organization_id, is_default=True),
            cell=cell,
            name=name,
            host=cluster_id.replace("_", "-"),
            ports=[],
            created_at=start,
            provisioned_at=start,
        )
    end = datetime(2026, 10, 1, tzinfo=UTC)
    make_hours_complete(organization_id, cluster_id, start, end)
    return cluster_id


def usual_usage(organization_id: str, cluster_id: str) -> list[Used]:
    """Rows of a first day that together cost $0.40 + $0.20 + $1.20 + nothing."""
    return [
        Used(organization_id, cluster_id, "ingress_bytes", 15 * GIB),
        Used(organization_id, cluster_id, "ingress_bytes", 5 * GIB, topic_id=TOPIC),
        Used(organization_id, cluster_id, "egress_bytes", 15 * GIB),
        Used(organization_id, cluster_id, "storage_byte_minutes", 25 * GIB * MINUTES, principal=""),
        Used(organization_id, cluster_id, "partition_minutes", 12 * MINUTES, principal=""),
        Used(organization_id, cluster_id, "broker_seconds", 999, billed=False),
    ]


def publish_month(
    first_day: list[Used], month: date = MONTH, *, but: Collection[date] = ()
) -> None:
    """Publishes every day of a month but some, with all usage on the first day."""
    for day in days_of(month):
        if day not in but:
            publish_day(day, first_day if day == month else [])


def sign_up(organization: Organization) -> None:
    """Makes an organization older than `MONTH`."""
    with organization_scope(organization.pk):
        Organization.objects.filter(pk=organization.pk).update(
            created_at=datetime(2026, 8, 1, tzinfo=UTC)
        )


def move_to(organization_id: str, country: str) -> None:
    """Sets the country of an organization's billing details, without a VAT id."""
    with organization_scope(organization_id):
        BillingDetails.objects.update_or_create(pk=organization_id, defaults={"country": country})


def issue_invoices(
    organization_id: str | None = None,
    *,
    close_early: str = "",
    draft: bool = False,
    on_batch: Callable[[IssueReport, int], None] = lambda report, of: None,
) -> IssueReport:
    """Issues `MONTH`, and does what follows a commit, which tests' transactions never reach."""
    report = issue_month(
        month=MONTH,
        by="tests",
        organization_id=organization_id,
        close_early=close_early,
        draft=draft,
        on_batch=on_batch,
    )
    numbers.confirm_blocks(document_store())
    return report


def invoices_of(organization_id: str) -> list[Invoice]:
    """All that an organization has: invoices, then credit notes."""
    with system_scope():
        invoices = Invoice.objects.for_organization(organization_id).order_by("-kind", "revision")
        return list(invoices.select_related("basis").prefetch_related("lines"))

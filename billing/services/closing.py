"""The last invoice of a closed organization, issued as soon as all of its usage is rolled up.

It does not wait for the month's end. The month's days after the last use have no roll-up yet, and
need none: no cluster runs any more. Where usage stays incomplete, the monthly run invoices it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from billing.models import Invoice
from billing.periods import month_of
from billing.services.issuing import issue_month, metered_clusters
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.tenancy import system_scope
from metering.periods import DAY, day_start, from_ms
from metering.services.totals import is_metered, month_completeness
from provisioning.models import Cluster, Operation
from provisioning.models.cluster import RESTORABLE

logger = logging.getLogger(__name__)

BY = "freshet"
# The monthly run has invoiced organizations that were closed longer ago.
LOOKED_AT = timedelta(days=62)


def issue_final_invoices() -> int:
    """Issues every last invoice that is due; returns how many. One that fails is logged."""
    with system_scope():
        closed = Organization.objects.filter(closed_at__gt=now() - LOOKED_AT)
        waiting = list(closed.order_by("closed_at").values_list("pk", flat=True))
    issued = 0
    for organization_id in waiting:
        try:
            issued += issue_final_invoice(organization_id=organization_id)
        except Exception:
            # One organization's failure must not hold up the invoices of the others.
            logger.exception("final_invoice.failed", extra={"organization": organization_id})
    return issued


def issue_final_invoice(*, organization_id: str) -> bool:
    """Issues the last invoice of a closed organization, if it is due; returns whether it did.

    Repeating it changes nothing. Raises what `issue_month` raises.
    """
    with system_scope():
        organization = Organization.objects.filter(pk=organization_id).first()
        if organization is None or organization.closed_at is None:
            return False
        until = _last_use(organization, organization.closed_at)
        if (
            until is None
            or _has_invoice(organization, until)
            or not _is_counted(organization, until)
        ):
            return False
    reason = f"The organization was closed on {organization.closed_at:%Y-%m-%d}."
    report = issue_month(
        month=month_of(until), by=BY, organization_id=organization_id, close_early=reason
    )
    return bool(report.issued)


def _last_use(organization: Organization, closed_at: datetime) -> datetime | None:
    """When the last use was that is billed; None while a deletion is not finished."""
    clusters = Cluster.objects.for_organization(organization.pk)
    deleting = Operation.objects.for_organization(organization.pk).unfinished()
    if clusters.active().exists() or deleting.exists():
        return None
    ends = [
        _end_of_use(deletions)
        for deletions in clusters.values_list("deletions", flat=True)
        if deletions
    ]
    return max([closed_at, *ends])


def _end_of_use(deletions: Sequence[tuple[int, int | None]]) -> datetime:
    """When a deleted cluster stops counting: at once, or where it had been restored, at its purge.

    See `metering.agent.storage.free_deletions`.
    """
    # The cell dates a deletion when it stops the brokers, which may be later than the request.
    stopped_ms = deletions[-1][0]
    return from_ms(stopped_ms) + (RESTORABLE if len(deletions) > 1 else timedelta())


def _has_invoice(organization: Organization, until: datetime) -> bool:
    """Whether the month has an issued invoice, a void one included: a person replaces void ones."""
    invoices = Invoice.objects.for_organization(organization.pk).invoices().issued()
    return invoices.filter(month=month_of(until)).exists()


def _is_counted(organization: Organization, until: datetime) -> bool:
    """Whether all usage up to a time is in published roll-ups."""
    month, day = month_of(until), until.date()
    clusters = metered_clusters(month, organization.pk)
    if not clusters:
        return True
    if now() < day_start(day) + DAY:
        return False
    completeness = month_completeness(month, organization.pk)
    open_days = [*completeness.missing_days, *completeness.stale_days]
    return (
        all(open_day > day for open_day in open_days)
        and all(hour.hour > until for hour in completeness.incomplete_hours)
        and all(is_metered(cluster_id=cluster, until=until) for cluster in clusters)
    )

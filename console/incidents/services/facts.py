"""Reads the facts that the rules judge, of every organization, in the system's tenancy scope."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.db.models import Count, Min

from billing.collection.watching import what_needs_a_person
from billing.services.missing import unissued_months
from brokers.errors import MetadataError
from brokers.metadata_records import ClusterStatus
from console.base.common.conf import config
from console.base.common.models import OutboxEntry
from console.incidents import restarts
from console.incidents.facts import (
    ClusterFact,
    DamageFact,
    HealthFact,
    InvoicesFact,
    MeterFact,
    MoneyFact,
    OperationFact,
    UsageFact,
)
from console.incidents.models import RestartCount
from console.incidents.rules import Facts
from metering.models import JudgedHour
from metering.services.status import what_differs
from provisioning.cells import cell_store, metadata_out_of_space
from provisioning.clusters.services.deletion_guard import cell_health
from provisioning.models import Cluster, Operation

logger = logging.getLogger(__name__)

# The hour that runs and the two before it may be incomplete. Hours older than two days are left to
# the checks of the roll-up.
USAGE_LATE = timedelta(hours=3)
USAGE_OLDEST = timedelta(hours=48)
RUNNING_PHASES = {"starting", "running", "stopping"}


def gather_facts(at: datetime) -> Facts:
    """Reads all facts: three reads of the cell, and then queries.

    Restarts that are new since the last sweep are written to `RestartCount`.
    """
    statuses, health = _read_statuses(), _read_health()
    # A store that did not answer a moment ago is not asked, and waited for, again.
    out_of_space = None if statuses is None else metadata_out_of_space()
    return Facts(
        at=at,
        cell=config().cell.id,
        cell_answers=statuses is not None,
        clusters=_cluster_facts(statuses, at) if statuses is not None else (),
        operations=_operation_facts(),
        usage=_usage_facts(at),
        health=health,
        out_of_space=out_of_space,
        invoices=[
            InvoicesFact(f"{month.month:%Y-%m}", month.missing, month.reason)
            for month in unissued_months(at)
        ],
        money=MoneyFact(*what_needs_a_person(at)),
        meter=MeterFact(*what_differs()),
        oldest_task_at=OutboxEntry.objects.aggregate(oldest=Min("created_at"))["oldest"],
    )


def _read_statuses() -> Mapping[str, ClusterStatus] | None:
    try:
        return cell_store().statuses()
    except MetadataError as error:
        logger.warning("incidents.cell_away error=%s", error)
        return None


def _read_health() -> HealthFact | None:
    health = cell_health()
    if health is None:
        return None
    return HealthFact(
        reported_at=datetime.fromtimestamp(health.told_at_ms / 1000, UTC),
        held=health.held,
        unhealthy=health.unhealthy,
        desired=health.wanted,
        platform=health.platform,
        machines=health.machines,
        etcd_file_bytes=health.etcd_file_bytes,
        etcd_in_use_bytes=health.etcd_in_use_bytes,
        etcd_quota_bytes=health.etcd_quota_bytes,
        damaged=[DamageFact(*batch) for batch in health.damaged],
        damage_unknown=health.damage_unknown,
    )


def _cluster_facts(statuses: Mapping[str, ClusterStatus], at: datetime) -> list[ClusterFact]:
    known = {count.cluster_id: count for count in RestartCount.objects.all()}
    facts = []
    for pk, organization_id, name in Cluster.objects.active().values_list(
        "pk", "organization_id", "name"
    ):
        status = statuses.get(pk)
        if status is None:
            continue
        facts.append(
            ClusterFact(
                id=pk,
                organization_id=organization_id,
                name=name,
                phase=status.phase,
                message=status.message,
                crashing=_note_restarts(known.pop(pk, None), pk, organization_id, status, at),
            )
        )
    # What remains belongs to clusters that are not active any more.
    RestartCount.objects.filter(pk__in=known).delete()
    return facts


def _note_restarts(
    row: RestartCount | None,
    cluster_id: str,
    organization_id: str,
    status: ClusterStatus,
    at: datetime,
) -> bool:
    """Writes down new restarts of a cluster; returns whether its brokers are in a crash loop."""
    before = None if row is None else restarts.Restarts(row.count, row.streak, row.last_at)
    count = status.restarts if status.phase in RUNNING_PHASES else 0
    after = restarts.count_restarts(before, count, at)
    if after is None:
        if row is not None:
            row.delete()
    elif after != before:
        RestartCount.objects.update_or_create(
            pk=cluster_id,
            defaults={
                "organization_id": organization_id,
                "count": after.count,
                "streak": after.streak,
                "last_at": after.last_at,
            },
        )
    return restarts.is_crash_loop(after, at)


def _operation_facts() -> list[OperationFact]:
    return [
        OperationFact(
            id=operation.pk,
            organization_id=operation.organization_id,
            cluster_id=operation.cluster_id,
            type=operation.type,
            created_at=operation.created_at,
        )
        for operation in Operation.objects.unfinished()
    ]


def _usage_facts(at: datetime) -> list[UsageFact]:
    late = JudgedHour.objects.filter(
        complete=False, hour__gte=at - USAGE_OLDEST, hour__lt=at - USAGE_LATE
    )
    rows = late.values_list("organization_id", "cluster_id").annotate(
        hours=Count("hour"), first=Min("hour")
    )
    return [UsageFact(*row) for row in rows.order_by("cluster_id")]

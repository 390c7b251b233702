"""What months come to so far, read from running totals: what budgets and costs stand on.

Each function reads in the caller's tenancy scope. Quantities are billed ones, in the meters' base
units; a month is named by any of its days. What it costs does not depend on how many rows there
are, but on how many clusters, and for parts on how many topics and principals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection

from metering.choices import PART_METERS, PartKind
from metering.models import RunningDay, RunningHour, RunningMonth
from metering.periods import HOUR, MINUTE_MS, month_start, next_month
from metering.services.running_sql import GREATEST_PARTS

# (cluster, meter) → quantity.
Totals = dict[tuple[str, str], int]
# (cluster, meter) → topic or principal → quantity.
Parts = dict[tuple[str, str], dict[str, int]]
# (cluster, meter) → what one base unit counts for in the order of parts, at least 0.
Weights = Mapping[tuple[str, str], Decimal]

# A sleeping cluster is metered once an hour. A meter without newer minutes than this has no rate.
RATE_AGE_MAX = timedelta(hours=3)


@dataclass(slots=True)
class GreatestParts:
    """The greatest parts of a month, and its totals at the moment at which they were read."""

    totals: Totals = field(default_factory=dict)
    by_topic: Parts = field(default_factory=dict)
    # The principal "" stands for none.
    by_principal: Parts = field(default_factory=dict)


def month_totals(month: date, organization_ids: Collection[str]) -> dict[str, Totals]:
    """The usage of each organization so far; those without usage have an empty entry."""
    totals: dict[str, Totals] = {organization_id: {} for organization_id in organization_ids}
    rows = RunningMonth.objects.filter(
        month=month_start(month), organization_id__in=list(organization_ids)
    )
    columns = rows.values_list("organization_id", "cluster_id", "meter", "quantity")
    for organization_id, cluster_id, meter, quantity in columns.iterator():
        if quantity:
            totals[organization_id][cluster_id, meter] = int(quantity)
    return totals


def day_totals(organization_id: str, month: date) -> dict[tuple[str, str], dict[date, int]]:
    """(cluster, meter) → day → quantity, of the days on which anything was used.

    The days of a cluster and a meter sum to its total in the month.
    """
    rows = RunningDay.objects.filter(
        organization_id=organization_id, day__gte=month_start(month), day__lt=next_month(month)
    )
    days: dict[tuple[str, str], dict[date, int]] = {}
    for cluster_id, meter, day, quantity in rows.values_list(
        "cluster_id", "meter", "day", "quantity"
    ).order_by("day"):
        if quantity:
            days.setdefault((cluster_id, meter), {})[day] = int(quantity)
    return days


def greatest_parts(
    organization_id: str, month: date, weights: Weights, *, limit: int
) -> GreatestParts:
    """The topics and the principals with the greatest sums of weighted quantities.

    At most `limit` of either. Only clusters with a weight count.
    One statement, so that parts and totals are of one moment.
    """
    clusters = sorted({cluster_id for cluster_id, _ in weights})
    parameters: dict[str, Any] = {
        "organization": organization_id,
        "month": month_start(month),
        "limit": limit,
        "clusters": clusters,
        "topic": PartKind.TOPIC.value,
        "principal": PartKind.PRINCIPAL.value,
    }
    for meter in PART_METERS:
        parameters[meter] = [
            weights.get((cluster_id, meter), Decimal(0)) for cluster_id in clusters
        ]
    read = GreatestParts()
    kinds = {PartKind.TOPIC.value: read.by_topic, PartKind.PRINCIPAL.value: read.by_principal}
    with connection.cursor() as cursor:
        cursor.execute(GREATEST_PARTS, parameters)
        for kind, cluster_id, name, *quantities in cursor.fetchall():
            for meter, quantity in zip(PART_METERS, quantities, strict=True):
                if not quantity:
                    continue
                if kind in kinds:
                    kinds[kind].setdefault((cluster_id, meter), {})[name] = int(quantity)
                else:
                    read.totals[cluster_id, meter] = int(quantity)
    return read


def accruing_rates(organization_id: str) -> Totals:
    """(cluster, meter) → present base units a minute, of meters that count time.

    On average over the newest hour that has minutes and the one before it.
    """
    rows = RunningHour.objects.filter(organization_id=organization_id)
    latest = rows.order_by("-hour").values_list("hour", flat=True).first()
    if latest is None:
        return {}
    hours: dict[tuple[str, str], dict[datetime, RunningHour]] = {}
    for row in rows.filter(hour__gte=latest - RATE_AGE_MAX - HOUR):
        hours.setdefault((row.cluster_id, row.meter), {})[row.hour] = row
    newest = max(row.last_minute for by_hour in hours.values() for row in by_hour.values())
    return {
        key: _rate_per_minute(by_hour)
        for key, by_hour in hours.items()
        if by_hour[max(by_hour)].last_minute > newest - RATE_AGE_MAX
    }


def _rate_per_minute(hours: Mapping[datetime, RunningHour]) -> int:
    last = hours[max(hours)]
    basis = [row for hour, row in hours.items() if hour >= last.hour - HOUR]
    first_minute = min(row.first_minute for row in basis)
    minutes = (last.last_minute - first_minute) // timedelta(milliseconds=MINUTE_MS) + 1
    return int(sum(row.quantity for row in basis)) // minutes

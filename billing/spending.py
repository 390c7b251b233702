"""What organizations used in a month so far, and what that costs.

Read from published days, and for other days from provisional minutes. Each function reads in the
caller's tenancy scope; a month is named by any of its days; quantities are billed ones, in base
units.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Max, Sum

from billing.catalog import SHOWN_ONLY
from billing.forecast import ACCRUING
from billing.models import PriceVersion
from billing.rating import rate_totals
from console.base.common.conf import config
from metering.choices import Granularity
from metering.models import ClusterCoverage, ProvisionalMinute, RollupPointer, UsageRow
from metering.periods import DAY, day_start, from_ms, month_span

logger = logging.getLogger(__name__)

# Organization → (cluster, meter) → quantity.
MonthTotals = dict[str, dict[tuple[str, str], int]]
# (cluster, meter) → topic or principal (a text), or day → quantity.
Shares = dict[tuple[str, str], dict[str, int]]
DayShares = dict[tuple[str, str], dict[date, int]]

# The present rate of storage and partitions is taken from this much of the newest minutes.
RATE_BASIS = timedelta(hours=1)
# A sleeping cluster is metered once an hour. A meter without newer minutes than this has no rate.
RATE_AGE_MAX = timedelta(hours=3)

# A grouping leaves the columns null by which it does not group; no row has a null of its own.
MONTH_USAGE = """
WITH published AS (
    SELECT day, run_id FROM metering_rolluppointer
    WHERE cell = %(cell)s
        AND day >= (%(start)s::timestamptz AT TIME ZONE 'UTC')::date
        AND day < (%(end)s::timestamptz AT TIME ZONE 'UTC')::date
), used AS (
    SELECT cluster_id, meter, topic_id, principal,
        (window_start AT TIME ZONE 'UTC')::date AS day, quantity
    FROM metering_usagerow
    WHERE organization_id = %(organization)s AND granularity = %(day)s AND billed
        AND window_start >= %(start)s AND window_start < %(end)s
        AND run_id IN (SELECT run_id FROM published)
    UNION ALL
    SELECT cluster_id, meter, topic_id, principal, (minute AT TIME ZONE 'UTC')::date, quantity
    FROM metering_provisionalminute
    WHERE organization_id = %(organization)s AND billed
        AND minute >= %(start)s AND minute < %(end)s
        AND (minute AT TIME ZONE 'UTC')::date NOT IN (SELECT day FROM published)
)
SELECT cluster_id, meter, topic_id, principal, day, sum(quantity) FROM used
GROUP BY GROUPING SETS (
    (cluster_id, meter),
    (cluster_id, meter, topic_id),
    (cluster_id, meter, principal),
    (cluster_id, meter, day)
)
"""


@dataclass(frozen=True, slots=True)
class MonthUsage:
    """The billed quantities of one organization's month, and who has which part of them."""

    totals: dict[tuple[str, str], int] = field(default_factory=dict)
    by_topic: Shares = field(default_factory=dict)
    # The principal "" stands for none.
    by_principal: Shares = field(default_factory=dict)
    by_day: DayShares = field(default_factory=dict)


def totals_by_organization(month: date, organization_ids: Collection[str]) -> MonthTotals:
    """The usage of each organization, in two queries; those without usage have an empty entry.

    The pointers are read once, and runs never change. So a day that is published at this moment
    is counted from its minutes or from its run, never from both.
    """
    start, end = month_span(month)
    pointers = RollupPointer.objects.filter(
        cell=config().cell.id, day__gte=start.date(), day__lt=end.date()
    )
    published = dict(pointers.values_list("day", "run_id"))
    days = UsageRow.objects.billed().days().within(start, end)
    minutes = ProvisionalMinute.objects.filter(billed=True, minute__gte=start, minute__lt=end)
    for day in published:
        minutes = minutes.exclude(minute__gte=day_start(day), minute__lt=day_start(day) + DAY)
    totals: MonthTotals = {organization_id: {} for organization_id in organization_ids}
    for rows in (days.filter(run_id__in=published.values()), minutes):
        sums = rows.filter(organization_id__in=organization_ids).values_list(
            "organization_id", "cluster_id", "meter"
        )
        for organization_id, cluster_id, meter, total in sums.annotate(total=Sum("quantity")):
            of = totals[organization_id]
            of[cluster_id, meter] = of.get((cluster_id, meter), 0) + int(total)
    return totals


def spent_by_organization(month: date, organization_ids: Collection[str]) -> dict[str, int]:
    """What each organization's month costs so far before taxes, in minor units.

    A meter without a price costs nothing here, and is logged, because budgets must still be
    evaluated.
    """
    first = month.replace(day=1)
    catalog = PriceVersion.objects.in_force(first).catalog()
    known_meters = SHOWN_ONLY | catalog.prices.keys()
    spent = {}
    for organization_id, totals in totals_by_organization(first, organization_ids).items():
        priced = {key: n for key, n in totals.items() if key[1] in known_meters}
        if len(priced) < len(totals):
            meters = sorted({meter for _, meter in totals.keys() - priced.keys()})
            extra = {"organization": organization_id, "meters": meters}
            logger.error("spending.unpriced_meters", extra=extra)
        spent[organization_id] = sum(
            line.amount_minor for line in rate_totals(priced, catalog, first)
        )
    return spent


def month_usage(organization_id: str, month: date) -> MonthUsage:
    """What an organization used, and what each topic, principal and day has in it.

    One statement, so that all of it is of one moment: the parts of a meter sum to it exactly.
    """
    start, end = month_span(month)
    parameters: dict[str, Any] = {
        "organization": organization_id,
        "cell": config().cell.id,
        "day": Granularity.DAY.value,
        "start": start,
        "end": end,
    }
    usage = MonthUsage()
    with connection.cursor() as cursor:
        cursor.execute(MONTH_USAGE, parameters)
        for cluster_id, meter, topic_id, principal, day, total in cursor.fetchall():
            key, quantity = (cluster_id, meter), int(total)
            if topic_id is not None:
                usage.by_topic.setdefault(key, {})[topic_id] = quantity
            elif principal is not None:
                usage.by_principal.setdefault(key, {})[principal] = quantity
            elif day is not None:
                usage.by_day.setdefault(key, {})[day] = quantity
            else:
                usage.totals[key] = quantity
    return usage


def known_until(organization_id: str) -> datetime | None:
    """The time up to which an organization's usage is known; None where none is known."""
    rows = ClusterCoverage.objects.filter(organization_id=organization_id, as_of_ms__gt=0)
    latest_ms = rows.aggregate(latest=Max("as_of_ms"))["latest"]
    return None if latest_ms is None else from_ms(latest_ms)


def accruing_rates(organization_id: str) -> dict[tuple[str, str], int]:
    """(cluster, meter) → present base units a minute of storage and partitions."""
    rows = ProvisionalMinute.objects.filter(
        organization_id=organization_id, billed=True, meter__in=sorted(ACCRUING)
    )
    latest = rows.aggregate(latest=Max("minute"))["latest"]
    if latest is None:
        return {}
    minutes: dict[tuple[str, str], dict[datetime, int]] = {}
    since = latest - RATE_AGE_MAX - RATE_BASIS
    fresh = rows.filter(minute__gt=since).values_list("cluster_id", "meter", "minute")
    for cluster_id, meter, minute, quantity in fresh.annotate(total=Sum("quantity")):
        minutes.setdefault((cluster_id, meter), {})[minute] = int(quantity)
    return {
        key: _rate_per_minute(by_minute)
        for key, by_minute in minutes.items()
        if max(by_minute) > latest - RATE_AGE_MAX
    }


def _rate_per_minute(minutes: dict[datetime, int]) -> int:
    """Base units a minute, on average over the newest minutes (`RATE_BASIS`)."""
    newest = max(minutes)
    basis = {minute: n for minute, n in minutes.items() if minute > newest - RATE_BASIS}
    span = (newest - min(basis)) // timedelta(minutes=1) + 1
    return sum(basis.values()) // span

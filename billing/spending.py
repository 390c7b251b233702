"""What organisations used of a month so far, and what that costs.

From published days, and the provisional minutes of the others. Each function reads in the caller's
tenancy scope; a month is named by any of its days; quantities are billed ones, in base units.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Max, Sum

from billing.catalog import SHOWN_ONLY
from billing.forecast import ACCRUING
from billing.models import PriceVersion
from billing.rating import rate
from console.base.common.conf import config
from metering.models import ClusterCoverage, ProvisionalMinute, RollupPointer, UsageRow
from metering.periods import DAY, day_start, from_ms, month_span

logger = logging.getLogger(__name__)

# Organisation → (cluster, meter) → quantity.
MonthTotals = dict[str, dict[tuple[str, str], int]]
# (cluster, meter) → topic or principal → quantity.
Shares = dict[tuple[str, str], dict[str, int]]

# The present rate of what stands is that of the last minutes that are known of it.
RATE_BASIS = timedelta(hours=1)
# Clusters that sleep are metered by the hour. What is older than this does not stand any more.
RATE_AGE_MAX = timedelta(hours=3)


def totals_by_organization(month: date, organization_ids: Collection[str]) -> MonthTotals:
    """What each organisation used, in two queries; those that used nothing are there too."""
    totals: MonthTotals = {organization_id: {} for organization_id in organization_ids}
    by = ("organization_id", "cluster_id", "meter")
    for organization_id, cluster_id, meter, quantity in _sums(month, organization_ids, by):
        of = totals[organization_id]
        of[cluster_id, meter] = of.get((cluster_id, meter), 0) + quantity
    return totals


def spent_by_organization(month: date, organization_ids: Collection[str]) -> dict[str, int]:
    """What each organisation's month costs so far before taxes, in minor units.

    What has no price costs nothing here, and is logged: budgets must go on being held.
    """
    first = month.replace(day=1)
    catalog = PriceVersion.objects.in_force(first).catalog()
    known = SHOWN_ONLY | catalog.prices.keys()
    spent = {}
    for organization_id, totals in totals_by_organization(first, organization_ids).items():
        priced = {key: n for key, n in totals.items() if key[1] in known}
        if len(priced) < len(totals):
            meters = sorted({meter for _, meter in totals.keys() - priced.keys()})
            extra = {"organization": organization_id, "meters": meters}
            logger.error("spending.unpriced_meters", extra=extra)
        spent[organization_id] = sum(line.amount_minor for line in rate(priced, catalog, first))
    return spent


def topic_shares(organization_id: str, month: date) -> Shares:
    """Who of an organisation's topics used how much."""
    return _shares(organization_id, month, "topic_id")


def principal_shares(organization_id: str, month: date) -> Shares:
    """Who of an organisation's principals used how much; the empty one is nobody."""
    return _shares(organization_id, month, "principal")


def known_until(organization_id: str) -> datetime | None:
    """Up to when usage of the organisation's clusters is known; None where nothing is."""
    rows = ClusterCoverage.objects.filter(organization_id=organization_id, as_of_ms__gt=0)
    latest_ms = rows.aggregate(latest=Max("as_of_ms"))["latest"]
    return None if latest_ms is None else from_ms(latest_ms)


def accruing_rates(organization_id: str) -> dict[tuple[str, str], int]:
    """(cluster, meter) → base units a minute, at present, of what an organisation keeps."""
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
        key: _rate(found) for key, found in minutes.items() if max(found) > latest - RATE_AGE_MAX
    }


def _rate(minutes: dict[datetime, int]) -> int:
    """Base units a minute, over the time from the first to the last of the newest minutes."""
    newest = max(minutes)
    basis = {minute: n for minute, n in minutes.items() if minute > newest - RATE_BASIS}
    span = (newest - min(basis)) // timedelta(minutes=1) + 1
    return sum(basis.values()) // span


def _shares(organization_id: str, month: date, whose: str) -> Shares:
    shares: Shares = {}
    by = ("cluster_id", "meter", whose)
    for cluster_id, meter, who, quantity in _sums(month, [organization_id], by):
        of = shares.setdefault((cluster_id, meter), {})
        of[who] = of.get(who, 0) + quantity
    return shares


def _sums(
    month: date, organization_ids: Collection[str], by: tuple[str, ...]
) -> Iterator[tuple[Any, ...]]:
    """Sums by some columns: of the published days, then of the other minutes.

    Which days are published is read once, and runs never change: a day that is published at this
    moment is counted from the one or the other, not from both.
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
    for rows in (days.filter(run_id__in=published.values()), minutes):
        sums = rows.filter(organization_id__in=organization_ids).values_list(*by)
        for *keys, total in sums.annotate(total=Sum("quantity")):
            yield (*keys, int(total))

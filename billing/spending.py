"""What organizations used in a month so far, and what that costs.

Read from metering's running totals, so that it costs as much as there are clusters, and not as
there are rows. Each function reads in the caller's tenancy scope; a month is named by any of its
days; quantities are billed ones, in base units.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import date, datetime

from django.db.models import Max

from billing.allowances.services import read_allowances
from billing.catalog import SHOWN_ONLY
from billing.models import PriceVersion
from billing.rating import RatedLine, Spent, rate_totals, spent_on
from metering.models import ClusterCoverage
from metering.periods import from_ms
from metering.services.month_usage import (
    GreatestParts,
    Parts,
    Totals,
    day_totals,
    greatest_parts,
    month_totals,
)

logger = logging.getLogger(__name__)

# (cluster, meter) → day → quantity.
DayShares = dict[tuple[str, str], dict[date, int]]
# Usage may be added between the two reads of a month: then both are read again, so often at most.
READS_MAX = 4


@dataclass(frozen=True, slots=True)
class MonthUsage:
    """The billed quantities of one organization's month, what they cost, and who has which part.

    Of very many topics and principals only the dearest are there; the total less those is what all
    others have.
    """

    totals: Totals
    lines: list[RatedLine]
    by_day: DayShares
    by_topic: Parts = field(default_factory=dict)
    # The principal "" stands for none.
    by_principal: Parts = field(default_factory=dict)


def spent_by_organization(month: date, organization_ids: Collection[str]) -> dict[str, Spent]:
    """What each organization's month costs so far.

    A meter without a price costs nothing here, and is logged, because budgets must still be
    evaluated.
    """
    first = month.replace(day=1)
    catalog = PriceVersion.objects.in_force(first).catalog()
    known_meters = SHOWN_ONLY | catalog.prices.keys()
    spent = {}
    totals_of = month_totals(first, organization_ids)
    allowances = read_allowances(first, organization_ids, catalog)
    for organization_id, totals in totals_of.items():
        priced = {key: n for key, n in totals.items() if key[1] in known_meters}
        if len(priced) < len(totals):
            meters = sorted({meter for _, meter in totals.keys() - priced.keys()})
            extra = {"organization": organization_id, "meters": meters}
            logger.error("spending.unpriced_meters", extra=extra)
        free = allowances.free_of(organization_id, priced)
        spent[organization_id] = spent_on(rate_totals(priced, catalog, first, free))
    return spent


def month_usage(
    organization_id: str,
    month: date,
    lines_of: Callable[[Totals], list[RatedLine]],
    *,
    parts_max: int,
) -> MonthUsage:
    """What an organization used, on which days, and what its dearest topics and principals have.

    `lines_of` rates totals: only the clusters and meters of its lines have parts. Totals and parts
    are of one moment: no part is greater than what it is a part of.
    """
    for _ in range(READS_MAX):
        by_day = day_totals(organization_id, month)
        totals = {key: sum(days.values()) for key, days in by_day.items()}
        lines = lines_of(totals)
        weights = {
            (line.cluster_id, line.meter): line.amount_minor / line.quantity for line in lines
        }
        parts = greatest_parts(organization_id, month, weights, limit=parts_max)
        if all(totals[key] == parts.totals.get(key) for key in weights):
            return MonthUsage(totals, lines, by_day, parts.by_topic, parts.by_principal)
    # It is written to without end: the parts are left out rather than shown wrong.
    parts = GreatestParts()
    return MonthUsage(totals, lines, by_day, parts.by_topic, parts.by_principal)


def known_until(organization_id: str) -> datetime | None:
    """The time up to which an organization's usage is known; None where none is known."""
    rows = ClusterCoverage.objects.filter(organization_id=organization_id, as_of_ms__gt=0)
    latest_ms = rows.aggregate(latest=Max("as_of_ms"))["latest"]
    return None if latest_ms is None else from_ms(latest_ms)

"""What months come to so far, read from running totals: what budgets and costs stand on.

Each function reads in the caller's tenancy scope. Quantities are billed ones, in the meters' base
units; a month is named by any of its days. What it costs does not depend on how many rows there
are, but on how many clusters, and for parts on how many topics and principals: which of very many
are the greatest is decided once a minute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, NamedTuple

from django.db import connection

from metering.choices import PART_METERS, PartKind
from metering.models import RunningMonth
from metering.periods import HOUR, month_start, next_month
from metering.services.choosing import ChosenPart, chosen_parts
from metering.services.running_sql import (
    ACCRUING_RATES,
    DAYS_OF_MONTH,
    GREATEST_PARTS,
    NAMED_PARTS,
)

# (cluster, meter) → quantity.
Totals = dict[tuple[str, str], int]
# (cluster, meter) → topic or principal → quantity.
Parts = dict[tuple[str, str], dict[str, int]]
# (cluster, meter) → what one base unit counts for in the order of parts, at least 0.
Weights = Mapping[tuple[str, str], float]

# A sleeping cluster is metered once an hour. A meter without newer minutes than this has no rate.
RATE_AGE_MAX = timedelta(hours=3)
# So many times as many parts as are named are looked at first.
LOOKED = 4


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
    parameters: dict[str, Any] = {
        "organization": organization_id,
        "start": month_start(month),
        "end": next_month(month),
    }
    with connection.cursor() as cursor:
        cursor.execute(DAYS_OF_MONTH, parameters)
        return {
            (cluster_id, meter): dict(zip(days, map(int, quantities.split(",")), strict=True))
            for cluster_id, meter, days, quantities in cursor.fetchall()
        }


def greatest_parts(
    organization_id: str, month: date, weights: Weights, *, limit: int
) -> GreatestParts:
    """The topics and the principals with the greatest sums of weighted quantities.

    At most `limit` of either. Only clusters with a weight count. Quantities and totals are of one
    moment; where there are more than `limit`, which of them are the greatest was decided at most
    `CHOSEN_FOR_S` ago.
    """
    clusters = sorted({cluster_id for cluster_id, _ in weights})
    parameters = {
        "organization": organization_id,
        "month": month_start(month),
        "limit": limit,
        "clusters": clusters,
        "looked": LOOKED * limit,
    }
    key = (organization_id, month_start(month), limit, tuple(clusters))
    choice: Sequence[ChosenPart] | None = chosen_parts.get(key)
    if choice is not None:
        columns = [list(column) for column in zip(*choice, strict=True)]
        named = dict(zip(("kinds", "owners", "names"), columns, strict=True))
        rows = _read_parts(NAMED_PARTS, parameters | named)
        if len(_named_in(rows)) == len(choice):
            return _parts_of(rows)
        # One of them has nothing after a correction: another one is named in its place.
    by_meter = {
        meter: [weights.get((cluster_id, meter), 0.0) for cluster_id in clusters]
        for meter in PART_METERS
    }
    kinds = {"topic": PartKind.TOPIC.value, "principal": PartKind.PRINCIPAL.value}
    rows = _read_parts(GREATEST_PARTS, parameters | by_meter | kinds)
    choice = _named_in(rows)
    if any(sum(kind == one for one, *_ in choice) == limit for kind in PartKind.values):
        chosen_parts.keep(key, choice)
    return _parts_of(rows)


class _PartRow(NamedTuple):
    """A part of a month or, without a kind, the total of a cluster."""

    kind: str | None
    cluster_id: str
    name: str
    # In the order of `PART_METERS`.
    quantities: tuple[int, ...]


def _read_parts(statement: str, parameters: Mapping[str, Any]) -> list[_PartRow]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return [
            _PartRow(kind, cluster_id, name or "", tuple(map(int, quantities)))
            for kind, cluster_id, name, *quantities in cursor.fetchall()
        ]


def _named_in(rows: Iterable[_PartRow]) -> list[ChosenPart]:
    return [
        (row.kind, row.cluster_id, row.name) for row in rows if row.kind and any(row.quantities)
    ]


def _parts_of(rows: Iterable[_PartRow]) -> GreatestParts:
    read = GreatestParts()
    kinds = {PartKind.TOPIC.value: read.by_topic, PartKind.PRINCIPAL.value: read.by_principal}
    for row in rows:
        for meter, quantity in zip(PART_METERS, row.quantities, strict=True):
            if not quantity:
                continue
            if row.kind is None:
                read.totals[row.cluster_id, meter] = quantity
            else:
                kinds[row.kind].setdefault((row.cluster_id, meter), {})[row.name] = quantity
    return read


def accruing_rates(organization_id: str) -> Totals:
    """(cluster, meter) → present base units a minute, of meters that count time.

    On average over the newest hour that has minutes and the one before it.
    """
    parameters: dict[str, Any] = {
        "organization": organization_id,
        "age_max": RATE_AGE_MAX,
        "basis": HOUR,
    }
    with connection.cursor() as cursor:
        cursor.execute(ACCRUING_RATES, parameters)
        return {(cluster_id, meter): int(rate) for cluster_id, meter, rate in cursor.fetchall()}

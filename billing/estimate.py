"""What a month costs so far, by the usage that is known and the prices of the month."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from billing.allowances.services import read_allowances
from billing.budgets.caps import budget_caps
from billing.budgets.rules import billed_minor, share_billed
from billing.catalog import TRAFFIC
from billing.choices import Meter
from billing.forecast import HeldTraffic, forecast_totals
from billing.models import PriceVersion
from billing.money import Key, allocate_amount
from billing.periods import month_of, next_month, starts_at
from billing.rating import RatedLine, Spent, rate_totals, spent_on
from billing.spending import DayShares, known_until, month_usage
from console.base.accounts.models import Organization
from console.base.accounts.principals import names_of_principals
from console.base.accounts.traffic import LimitInForce
from console.base.common.clock import now, unix_ms
from metering.services.month_usage import Parts, Totals, accruing_rates
from metering.services.usage import topic_names
from provisioning.choices import Intent
from provisioning.models import Cluster

# The topics and the principals that are named, by amount; the others are one share together.
SHARES_MAX = 100


@dataclass(frozen=True, slots=True)
class CostLine:
    """What one meter of one cluster costs so far, and what it will have cost at the month's end."""

    rated: RatedLine
    cluster: str
    forecast_quantity: int
    forecast_minor: int


@dataclass(frozen=True, slots=True)
class MeterPart:
    """What one meter has of a share: a quantity in base units, and what it costs."""

    meter: str
    quantity: int
    amount_minor: int


@dataclass(frozen=True, slots=True)
class Share:
    """A part of what the lines cost: of a cluster, a topic or principal of it, or a day.

    A share without any of these is that of all others together, which are not named. Shares of
    clusters have their parts of the month's total and of its forecast.
    """

    meters: list[MeterPart]
    cluster_id: str | None = None
    cluster: str | None = None
    topic_id: str | None = None
    topic: str | None = None
    principal: str | None = None
    principal_name: str | None = None
    day: date | None = None
    billed_minor: int | None = None
    forecast_minor: int | None = None

    @property
    def amount_minor(self) -> int:
        """What the share costs, in minor units."""
        return sum(part.amount_minor for part in self.meters)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a month of an organization costs, before taxes. Amounts are minor units of `currency`.

    `total_minor` is what the lines cost less `beyond_budget_minor`, which a suspending budget keeps
    from being billed. The shares of each kind have the same sum as the lines.
    """

    month: date
    currency: str
    lines: list[CostLine]
    beyond_budget_minor: int
    total_minor: int
    forecast_minor: int
    by_meter: list[MeterPart]
    by_cluster: list[Share]
    by_topic: list[Share]
    by_principal: list[Share]
    # The days on which anything was used, in order.
    by_day: list[Share]
    # Usage up to this time is included; None where nothing is known yet.
    provisional_until: datetime | None
    # Meter → what is left of the trial, in base units; None where there is no trial to use up.
    trial_left: dict[str, int] | None = None


def estimate_month(
    organization_id: str, month: date, clusters: Collection[str] | None = None
) -> Estimate:
    """What an organization's month costs so far. Reads in the caller's tenancy scope.

    `month` is any day of the current month or an earlier one. With `clusters` the part that
    these have in it: all are rated together, as free allowances are the organization's, and so are
    budgets, which do not count in a part. Members and API keys have no names in a part.
    """
    first = month.replace(day=1)
    catalog = PriceVersion.objects.in_force(first).catalog()
    allowances = read_allowances(first, [organization_id], catalog)

    def rated_lines(totals: Totals) -> list[RatedLine]:
        free = allowances.free_of(organization_id, totals)
        return _lines_of_clusters(rate_totals(totals, catalog, first, free), clusters)

    usage = month_usage(organization_id, first, rated_lines, parts_max=SHARES_MAX)
    until = known_until(organization_id)
    known = _clusters(organization_id, (cluster_id for cluster_id, _ in usage.totals))
    rated = expected = usage.lines
    if first == month_of(now()):
        expected = rated_lines(
            _forecast_quantities(organization_id, first, usage.totals, until, known)
        )
    names = {cluster_id: cluster.name for cluster_id, cluster in known.items()}
    spent, forecast = spent_on(rated), spent_on(expected)
    caps = budget_caps(organization_id, first) if clusters is None else []
    total_minor = billed_minor(spent, caps)
    forecast_minor = billed_minor(forecast, caps, known_kept_minor=spent.kept_minor)
    return Estimate(
        month=first,
        currency=catalog.currency,
        lines=_cost_lines(rated, expected, names),
        beyond_budget_minor=spent.total_minor - total_minor,
        total_minor=total_minor,
        forecast_minor=forecast_minor,
        by_meter=_by_meter(rated),
        by_cluster=_by_cluster(rated, expected, names, total_minor, forecast_minor),
        by_topic=_by_topic(rated, usage.by_topic, names),
        by_principal=_by_principal(
            organization_id, rated, usage.by_principal, names, of_people=clusters is None
        ),
        by_day=_by_day(rated, usage.by_day),
        provisional_until=until,
        # A part says nothing of what the others use.
        trial_left=allowances.trial_left(organization_id, usage.totals)
        if clusters is None
        else None,
    )


def _lines_of_clusters(lines: list[RatedLine], clusters: Collection[str] | None) -> list[RatedLine]:
    return [line for line in lines if clusters is None or line.cluster_id in clusters]


def _forecast_quantities(
    organization_id: str,
    month: date,
    totals: Totals,
    until: datetime | None,
    clusters: Mapping[str, Cluster],
) -> Totals:
    """The quantities to expect at the end of the current month."""
    organization = Organization.objects.get(pk=organization_id)
    since = max(starts_at(month), organization.created_at)
    limit = organization.traffic_limit
    refused = {
        (cluster_id, meter)
        for cluster_id, meter in totals
        if _is_refused(meter, limit, clusters.get(cluster_id))
    }
    return forecast_totals(
        totals,
        accruing_rates(organization_id),
        since_ms=unix_ms(since),
        until_ms=unix_ms(max(until or now(), since)),
        end_ms=unix_ms(starts_at(next_month(month))),
        held=HeldTraffic(refused, None if limit is None else limit.bytes_per_s),
    )


def _is_refused(meter: str, limit: LimitInForce | None, cluster: Cluster | None) -> bool:
    """Whether a cluster has no traffic of a meter at present: it serves nobody, or a limit of its
    organization refuses it."""
    if meter not in TRAFFIC:
        return False
    if cluster is not None and not (cluster.may_run and cluster.intent == Intent.ACTIVE):
        return True
    if limit is None:
        return False
    return limit.refuses_produce if meter == Meter.INGRESS else limit.refuses_fetch


def _cost_lines(
    rated: list[RatedLine], expected: list[RatedLine], names: Mapping[str, str]
) -> list[CostLine]:
    # A forecast is never below what was used, so each rated line has an expected one.
    later = {(line.cluster_id, line.meter): line for line in expected}
    return [
        CostLine(
            rated=line,
            cluster=names.get(line.cluster_id, line.cluster_id),
            forecast_quantity=later[line.cluster_id, line.meter].quantity,
            forecast_minor=later[line.cluster_id, line.meter].amount_minor,
        )
        for line in rated
    ]


def _by_meter(lines: list[RatedLine]) -> list[MeterPart]:
    return _sum_parts(_part_of(line) for line in lines)


def _by_cluster(
    lines: list[RatedLine],
    expected: list[RatedLine],
    names: Mapping[str, str],
    total_minor: int,
    forecast_minor: int,
) -> list[Share]:
    parts: dict[str, list[MeterPart]] = {}
    for line in lines:
        parts.setdefault(line.cluster_id, []).append(_part_of(line))
    spent, later = _spent_by_cluster(lines), _spent_by_cluster(expected)
    billed = share_billed(spent, total_minor)
    more = share_billed(_growth(spent, later), forecast_minor - total_minor)
    shares = [
        Share(
            of_cluster,
            cluster_id=cluster_id,
            cluster=names.get(cluster_id, cluster_id),
            billed_minor=billed.get(cluster_id, 0),
            forecast_minor=billed.get(cluster_id, 0) + more.get(cluster_id, 0),
        )
        for cluster_id, of_cluster in parts.items()
    ]
    return sorted(shares, key=lambda share: (-share.amount_minor, share.cluster_id or ""))


def _spent_by_cluster(lines: Iterable[RatedLine]) -> dict[str, Spent]:
    by_cluster: dict[str, list[RatedLine]] = {}
    for line in lines:
        by_cluster.setdefault(line.cluster_id, []).append(line)
    return {cluster_id: spent_on(of_cluster) for cluster_id, of_cluster in by_cluster.items()}


def _growth(before: Mapping[str, Spent], after: Mapping[str, Spent]) -> dict[str, Spent]:
    """What clusters spend more, or nothing: one may get a greater part of what is free."""
    nothing = Spent()
    growth = {}
    for cluster_id, spent in after.items():
        had = before.get(cluster_id, nothing)
        growth[cluster_id] = Spent(
            max(0, spent.traffic_minor - had.traffic_minor),
            max(0, spent.kept_minor - had.kept_minor),
        )
    return growth


def _by_day(lines: list[RatedLine], shares: DayShares) -> list[Share]:
    """Shares by day. The free allowance counts on all days alike, by what was used on them."""
    # By day and meter, in the order in which meters come first: a quantity and an amount.
    sums: dict[date, dict[str, list[int]]] = {}
    for line in lines:
        quantities = shares.get((line.cluster_id, line.meter), {})
        amounts = allocate_amount(line.amount_minor, quantities)
        for day, quantity in quantities.items():
            of_meter = sums.setdefault(day, {}).setdefault(line.meter, [0, 0])
            of_meter[0] += quantity
            of_meter[1] += amounts[day]
    return [
        Share([MeterPart(meter, *of_meter) for meter, of_meter in sums[day].items()], day=day)
        for day in sorted(sums)
    ]


def _part_of(line: RatedLine) -> MeterPart:
    return MeterPart(line.meter, line.quantity, line.amount_minor)


def _parts_by(
    line: RatedLine, shares: Mapping[tuple[str, str], Mapping[Key, int]]
) -> dict[Key, MeterPart]:
    """A line's parts, whose quantities and amounts sum to those of the line."""
    quantities = shares.get((line.cluster_id, line.meter), {})
    amounts = allocate_amount(line.amount_minor, quantities)
    return {
        whose: MeterPart(line.meter, quantity, amounts[whose])
        for whose, quantity in quantities.items()
        if quantity
    }


def _sum_parts(parts: Iterable[MeterPart]) -> list[MeterPart]:
    """One part for each meter, in the order in which meters come first."""
    sums: dict[str, MeterPart] = {}
    for part in parts:
        known = sums.get(part.meter, MeterPart(part.meter, 0, 0))
        sums[part.meter] = MeterPart(
            part.meter,
            known.quantity + part.quantity,
            known.amount_minor + part.amount_minor,
        )
    return list(sums.values())


def _by_topic(lines: list[RatedLine], parts: Parts, names: Mapping[str, str]) -> list[Share]:
    greatest, others = _greatest_shares(lines, parts)
    topics = topic_names(greatest)
    shown = [
        Share(
            meters,
            cluster_id=cluster_id,
            cluster=names.get(cluster_id, cluster_id),
            topic_id=topic_id,
            topic=topics.get((cluster_id, topic_id), topic_id),
        )
        for (cluster_id, topic_id), meters in greatest.items()
    ]
    return [*shown, *others]


def _by_principal(
    organization_id: str,
    lines: list[RatedLine],
    parts: Parts,
    clusters: Mapping[str, str],
    *,
    of_people: bool,
) -> list[Share]:
    """Shares by principal. What no principal causes, such as storage, has the principal ""."""
    greatest, others = _greatest_shares(lines, parts)
    principals = {principal for _, principal in greatest}
    names = names_of_principals(organization_id, principals, of_people=of_people)
    shown = [
        Share(
            parts,
            cluster_id=cluster_id,
            cluster=clusters.get(cluster_id, cluster_id),
            principal=principal,
            principal_name=names.get(principal),
        )
        for (cluster_id, principal), parts in greatest.items()
    ]
    return [*shown, *others]


def _greatest_shares(
    lines: list[RatedLine], parts: Parts
) -> tuple[dict[tuple[str, str], list[MeterPart]], list[Share]]:
    """The parts of (cluster id, topic id or principal), the dearest first, at most `SHARES_MAX`.

    What costs nothing is left out. The second result is one share for all others, or empty where
    they cost nothing.
    """
    named: dict[tuple[str, str], list[MeterPart]] = {}
    rest: list[MeterPart] = []
    for line in lines:
        key = (line.cluster_id, line.meter)
        quantities: dict[str | None, int] = dict(parts.get(key, {}).items())
        # All others take part in the split as one, so that the amounts sum to the line's.
        quantities[None] = line.quantity - sum(quantities.values())
        for whose, part in _parts_by(line, {key: quantities}).items():
            if whose is None:
                rest.append(part)
            else:
                named.setdefault((line.cluster_id, whose), []).append(part)
    amounts = {key: sum(part.amount_minor for part in of) for key, of in named.items()}
    ranked = sorted(
        (key for key, amount in amounts.items() if amount), key=lambda key: (-amounts[key], key)
    )
    others = Share(_sum_parts(rest))
    return {key: named[key] for key in ranked}, [others] if others.amount_minor else []


def _clusters(organization_id: str, cluster_ids: Iterable[str]) -> dict[str, Cluster]:
    rows = Cluster.objects.for_organization(organization_id).filter(pk__in=set(cluster_ids))
    shown = rows.only("pk", "name", "intent", "suspended", "suspend_wanted")
    return {cluster.pk: cluster for cluster in shown}

"""What is free for organizations: by the catalogue, as a share of their payer's pool, or a trial.

Where nobody collects (`billing.collector = "none"`) each organization has the catalogue's allowance
each month, and nothing here is read or written. Otherwise the allowance belongs to a payer and is
shared by the organizations that it pays for. Where cards are charged (`stripe`), an organization
without one has a trial, once; where invoices are paid by bank transfer, it is its own payer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from billing.allowances.payers import organizations_of_payers, payers_of_month
from billing.allowances.rules import (
    free_of_trial,
    split_allowance,
    sum_by_meter,
    trial_part,
)
from billing.allowances.trials import ensure_trials, trials_left
from billing.catalog import Catalog
from billing.choices import AllowanceKind
from billing.models import AllowanceShare
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.services.month_usage import month_totals
from metering.services.totals import billable_totals

NOT_COLLECTED, BY_CARD = "none", "stripe"
# Organization → (cluster, meter) → quantity.
TotalsByOrganization = Mapping[str, Mapping[tuple[str, str], int]]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is free for an organization in a month. Quantities are base units by meter."""

    kind: AllowanceKind
    free: Mapping[str, int]
    payer_id: str | None = None
    # The part of `free` that uses the trial up.
    of_trial: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As an invoice keeps it: the kind, and what is free of each meter, as texts."""
        free = {meter: str(quantity) for meter, quantity in sorted(self.free.items())}
        return {"kind": self.kind.value, "free": free}


@dataclass(slots=True)
class MonthAllowances:
    """All that decides what is free in a month for some organizations, read at one time."""

    month: date
    catalog: Catalog
    # Whether those without a payer have a trial, and not the catalogue's allowance.
    with_trials: bool = False
    fixed: dict[str, Allowance] = field(default_factory=dict)
    # Those of `fixed` that are not written down yet.
    new: set[str] = field(default_factory=set)
    # Payers whose pool is shared out for the month: nothing is left for who is not among it.
    closed_payers: set[str] = field(default_factory=set)
    payers: dict[str, str] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    # Organization → meter → what was used, of everybody in the groups.
    used: dict[str, dict[str, int]] = field(default_factory=dict)
    # Organization → meter → what is left of its trial at the month's beginning.
    trials: dict[str, dict[str, int]] = field(default_factory=dict)

    def free_of(
        self, organization_id: str, totals: Mapping[tuple[str, str], int]
    ) -> Mapping[str, int] | None:
        """Meter → what is free for an organization that used so much, as `rate_totals` takes it."""
        allowance = self.of(organization_id, totals)
        return None if allowance is None else allowance.free

    def of(
        self, organization_id: str, totals: Mapping[tuple[str, str], int] | None = None
    ) -> Allowance | None:
        """What is free for an organization that used so much; None: the catalogue's allowance.

        Without `totals` it is what the organization used so far.
        """
        if organization_id in self.fixed:
            return self.fixed[organization_id]
        known = self.used.get(organization_id, {})
        used = known if totals is None else sum_by_meter(totals)
        payer_id = self.payers.get(organization_id)
        if payer_id is None and not self.with_trials:
            return None
        if payer_id is None:
            left = self.trials.get(organization_id, {})
            free = free_of_trial(left, used)
            return Allowance(AllowanceKind.TRIAL, free, of_trial=trial_part(left, used))
        if payer_id in self.closed_payers:
            return Allowance(AllowanceKind.POOL, {}, payer_id)
        group = {owner: self.used.get(owner, {}) for owner in self.groups[payer_id]}
        shares = split_allowance(self.pool, group | {organization_id: used})
        return Allowance(AllowanceKind.POOL, shares[organization_id], payer_id)

    @property
    def pool(self) -> dict[str, int]:
        """Meter → what a payer has free in the month."""
        prices = self.catalog.prices.items()
        return {meter: price.free_quantity(self.month) for meter, price in prices}


def read_allowances(
    month: date, organization_ids: Collection[str], catalog: Catalog
) -> MonthAllowances:
    """What decides about the allowances of organizations in a month, by what they used so far.

    Of other organizations of the same payers it reads what they used, and no more leaves this
    package than what is free.
    """
    first = month.replace(day=1)
    if config().billing.collector == NOT_COLLECTED:
        return MonthAllowances(first, catalog)
    with system_scope():
        allowances = _read_month(first, organization_ids, catalog)
        others = {owner for group in allowances.groups.values() for owner in group}
        used = month_totals(first, others)
    allowances.used = {owner: sum_by_meter(totals) for owner, totals in used.items()}
    return allowances


def begin_trials(organization_ids: Collection[str]) -> None:
    """Begins the trials that are due before invoices are made. Needs the system's scope."""
    if config().billing.collector == BY_CARD:
        ensure_trials(organization_ids)


def invoiced_allowances(
    month: date,
    organization_ids: Collection[str],
    catalog: Catalog,
    totals: TotalsByOrganization,
    *,
    complete: bool,
) -> MonthAllowances:
    """What invoices of a month take as free, by published quantities. Writes nothing.

    `totals`: the published quantities, of every organization where `complete`, else of those given
    alone. In the result's `fixed` are all organizations whose shares follow from these invoices.
    Needs the system's scope.
    """
    first = month.replace(day=1)
    if config().billing.collector == NOT_COLLECTED:
        return MonthAllowances(first, catalog)
    allowances = _read_month(first, organization_ids, catalog)
    owners = {owner for group in allowances.groups.values() for owner in group}
    for owner in owners | set(organization_ids):
        of_owner = totals.get(owner, {})
        if owner not in organization_ids and not complete:
            of_owner = _published_totals(first, owner)
        allowances.used[owner] = sum_by_meter(of_owner)
    due = {owner for owner in organization_ids if owner not in allowances.fixed}
    payers = {allowances.payers[owner] for owner in due if owner in allowances.payers}
    for payer_id in payers - allowances.closed_payers:
        group = allowances.groups[payer_id]
        due |= set(group)
        allowances.payers |= dict.fromkeys(group, payer_id)
    taken = {owner: allowance for owner in sorted(due) if (allowance := allowances.of(owner))}
    allowances.fixed |= taken
    allowances.new = set(taken)
    return allowances


def fix_allowances(allowances: MonthAllowances, invoiced: Collection[str]) -> None:
    """Writes down what invoices took as free, and with it the shares of all organizations of their
    payers; what was written before holds.

    `invoiced`: the organizations that got an invoice. It belongs into their transaction, under the
    lock by which invoices are issued one after the other.
    """
    payers = {allowances.fixed[owner].payer_id for owner in invoiced if owner in allowances.fixed}
    taken = {
        owner: allowances.fixed[owner]
        for owner in sorted(allowances.new)
        if owner in invoiced or allowances.fixed[owner].payer_id in payers - {None}
    }
    _write_shares(allowances.month, allowances.catalog, taken)


def _write_shares(month: date, catalog: Catalog, taken: Mapping[str, Allowance]) -> None:
    AllowanceShare.objects.bulk_create(
        AllowanceShare(
            organization_id=owner,
            month=month,
            meter=meter,
            kind=allowance.kind,
            payer_id=allowance.payer_id,
            quantity=allowance.free.get(meter, 0),
            of_trial=allowance.of_trial.get(meter, 0),
        )
        for owner, allowance in taken.items()
        for meter in catalog.prices
    )


def _read_month(
    month: date, organization_ids: Collection[str], catalog: Catalog
) -> MonthAllowances:
    allowances = MonthAllowances(month, catalog, with_trials=config().billing.collector == BY_CARD)
    shares = AllowanceShare.objects.filter(month=month)
    for share in shares.filter(organization_id__in=list(organization_ids)):
        known = allowances.fixed.get(share.organization_id)
        free = {**(known.free if known else {}), share.meter: int(share.quantity)}
        of_trial = {**(known.of_trial if known else {}), share.meter: int(share.of_trial)}
        allowances.fixed[share.organization_id] = Allowance(
            AllowanceKind(share.kind), free, share.payer_id, of_trial
        )
    allowances.payers = payers_of_month(month, organization_ids)
    allowances.groups = organizations_of_payers(month, set(allowances.payers.values()))
    closed = shares.filter(payer_id__in=list(allowances.groups))
    allowances.closed_payers = set(closed.values_list("payer_id", flat=True).distinct())
    if allowances.with_trials:
        without = [owner for owner in organization_ids if owner not in allowances.payers]
        allowances.trials = trials_left(month, without)
    return allowances


def _published_totals(month: date, organization_id: str) -> dict[tuple[str, str], int]:
    totals = billable_totals(month, organization_id)
    return {(total.cluster_id, total.meter): total.quantity for total in totals}

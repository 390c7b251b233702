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

from billing.allowances.links import free_before_payers, organizations_of_payers, payers_of_month
from billing.allowances.rules import (
    add,
    free_of_trial,
    shares_taken,
    split_allowance,
    subtract,
    sum_by_meter,
    trial_part,
)
from billing.allowances.trials import BY_CARD, ensure_trials, trials_left
from billing.catalog import Catalog
from billing.choices import AllowanceKind
from billing.models import AllowanceShare, Invoice
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.services.month_usage import month_totals

NOT_COLLECTED = "none"
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
    # The part of `free` that was used before the payer came, and is no share of the payer's.
    free_before: Mapping[str, int] = field(default_factory=dict)

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
    # What invoices took, and what those that are being made take.
    fixed: dict[str, Allowance] = field(default_factory=dict)
    # Those of `fixed` that are not written down yet.
    new: set[str] = field(default_factory=set)
    # Payer → meter → what invoices took of its pool.
    taken: dict[str, dict[str, int]] = field(default_factory=dict)
    payers: dict[str, str] = field(default_factory=dict)
    # Payer → the organizations that share what is left of its pool: those without an invoice.
    groups: dict[str, list[str]] = field(default_factory=dict)
    # Organization → meter → what it used for nothing before its payer came.
    free_before: dict[str, dict[str, int]] = field(default_factory=dict)
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
        past = self.free_before.get(organization_id, {})
        group = self._used_of_pool(payer_id) | {organization_id: subtract(used, past)}
        share = split_allowance(self._left(payer_id), group)[organization_id]
        return Allowance(AllowanceKind.POOL, add(share, past), payer_id, free_before=past)

    def trial_left(
        self, organization_id: str, totals: Mapping[tuple[str, str], int]
    ) -> dict[str, int] | None:
        """Meter → what is left of the trial of an organization that used so much in the month.

        Empty where it has none; None where somebody pays for the month, or there are no trials.
        """
        if not self.with_trials or organization_id in self.payers:
            return None
        return subtract(self.trials.get(organization_id, {}), sum_by_meter(totals))

    def take(self, organization_ids: Collection[str]) -> None:
        """Has invoices of some organizations take what is free, by what they used: no more."""
        of_pool: dict[str, list[str]] = {}
        for owner in organization_ids:
            payer_id = self.payers.get(owner)
            if payer_id is not None:
                of_pool.setdefault(payer_id, []).append(owner)
            elif (trial := self.of(owner)) is not None:
                self.fixed[owner] = trial
        for payer_id, owners in of_pool.items():
            shares = shares_taken(self._left(payer_id), self._used_of_pool(payer_id))
            for owner in owners:
                known, used = self.free_before.get(owner, {}), self.used[owner]
                past = {meter: min(n, used.get(meter, 0)) for meter, n in known.items()}
                free = add(shares[owner], past)
                self.fixed[owner] = Allowance(
                    AllowanceKind.POOL,
                    free,
                    payer_id,
                    of_trial=trial_part(self.trials.get(owner, {}), past),
                    free_before=past,
                )
        self.new |= self.fixed.keys() & set(organization_ids)

    def _used_of_pool(self, payer_id: str) -> dict[str, dict[str, int]]:
        """Organization → meter → what it used of what its payer has free."""
        return {
            owner: subtract(self.used.get(owner, {}), self.free_before.get(owner, {}))
            for owner in self.groups.get(payer_id, ())
        }

    def _left(self, payer_id: str) -> dict[str, int]:
        """Meter → what is left of a payer's pool."""
        prices = self.catalog.prices.items()
        pool = {meter: price.free_quantity(self.month) for meter, price in prices}
        return subtract(pool, self.taken.get(payer_id, {}))


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
    revisions: Mapping[str, int],
    catalog: Catalog,
    totals: TotalsByOrganization,
    *,
    run: Collection[str],
) -> MonthAllowances:
    """What invoices of a month take as free, by published quantities. Writes nothing.

    `revisions`: organization → the revision of its invoice. `run`: the organizations that are
    invoiced now, these among them: they share what is left of their payers' pools. `totals` has
    what all of them used. Needs the system's scope.
    """
    first = month.replace(day=1)
    if config().billing.collector == NOT_COLLECTED:
        return MonthAllowances(first, catalog)
    allowances = _read_month(first, revisions.keys(), catalog, revisions)
    invoiced_now = {*run, *revisions}
    for payer_id, group in allowances.groups.items():
        allowances.groups[payer_id] = [owner for owner in group if owner in invoiced_now]
    sharing = {owner for group in allowances.groups.values() for owner in group}
    for owner in sharing | revisions.keys():
        allowances.used[owner] = sum_by_meter(totals.get(owner, {}))
    allowances.take([owner for owner in sorted(revisions) if owner not in allowances.fixed])
    return allowances


def fix_allowances(allowances: MonthAllowances, revisions: Mapping[str, int]) -> None:
    """Writes down what invoices took as free; what was written before holds.

    `revisions`: organization → revision, of the invoices that were issued. It belongs into their
    transaction, under the lock by which invoices are issued one after the other.
    """
    AllowanceShare.objects.bulk_create(
        AllowanceShare(
            organization_id=owner,
            month=allowances.month,
            meter=meter,
            kind=allowances.fixed[owner].kind,
            payer_id=allowances.fixed[owner].payer_id,
            quantity=allowances.fixed[owner].free.get(meter, 0),
            of_trial=allowances.fixed[owner].of_trial.get(meter, 0),
            free_before=allowances.fixed[owner].free_before.get(meter, 0),
            revision=revision,
        )
        for owner, revision in sorted(revisions.items())
        if owner in allowances.new
        for meter in allowances.catalog.prices
    )


def _read_month(
    month: date,
    organization_ids: Collection[str],
    catalog: Catalog,
    revisions: Mapping[str, int] | None = None,
) -> MonthAllowances:
    """`revisions`: those of the invoices to be made, of which some replace void ones."""
    allowances = MonthAllowances(month, catalog, with_trials=config().billing.collector == BY_CARD)
    allowances.fixed = _fixed_shares(month, organization_id__in=list(organization_ids))
    replaced = {
        owner: allowance.payer_id
        for owner, allowance in allowances.fixed.items()
        if allowance.payer_id is not None and (revisions or {}).get(owner, 1) > 1
    }
    allowances.payers = payers_of_month(month, organization_ids) | replaced
    payer_ids = set(allowances.payers.values())
    groups = organizations_of_payers(month, payer_ids)
    for owner in replaced:
        # It takes anew what is left of the pool, of which it took nothing then.
        del allowances.fixed[owner]
    _read_taken(allowances, groups, replaced)
    allowances.free_before = free_before_payers(
        month, {owner for group in allowances.groups.values() for owner in group}
    )
    if allowances.with_trials:
        without = {owner for owner in organization_ids if owner not in allowances.payers}
        allowances.trials = trials_left(month, without | allowances.free_before.keys())
    return allowances


def _read_taken(
    allowances: MonthAllowances, groups: Mapping[str, list[str]], replaced: Mapping[str, str]
) -> None:
    """What is taken of the pools of some payers, and who shares what is left of them."""
    if not groups:
        return
    others = {owner for group in groups.values() for owner in group} - replaced.keys()
    issued = Invoice.objects.invoices().issued().filter(month=allowances.month)
    issued = issued.filter(organization_id__in=others)
    settled = set(issued.values_list("organization_id", flat=True))
    for owner, share in _fixed_shares(allowances.month, payer_id__in=list(groups)).items():
        if owner not in replaced and share.payer_id is not None:
            settled.add(owner)
            known = allowances.taken.get(share.payer_id, {})
            taken = subtract(share.free, share.free_before)
            allowances.taken[share.payer_id] = add(known, taken)
    for payer_id, group in groups.items():
        members = {*group, *(owner for owner, of in replaced.items() if of == payer_id)}
        allowances.groups[payer_id] = sorted(members - settled)


def _fixed_shares(month: date, **of: Collection[str]) -> dict[str, Allowance]:
    """What invoices of a month took, of some organizations or payers."""
    fixed: dict[str, Allowance] = {}
    # Each revision has all meters, so that the last one replaces those before.
    for share in AllowanceShare.objects.filter(month=month, **of).order_by("revision"):
        known = fixed.get(share.organization_id)
        fixed[share.organization_id] = Allowance(
            AllowanceKind(share.kind),
            {**(known.free if known else {}), share.meter: int(share.quantity)},
            share.payer_id,
            {**(known.of_trial if known else {}), share.meter: int(share.of_trial)},
            {**(known.free_before if known else {}), share.meter: int(share.free_before)},
        )
    return fixed

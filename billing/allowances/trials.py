"""Trials: what an organization may use before it has a payment method. An address gives one, once.

An organization's trial begins when it is first looked at after its owner proved an address. What is
left of it goes from month to month.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from django.db.models import Sum

from billing.allowances.addresses import address_sha256
from billing.allowances.links import free_before_payers, payers_of_month
from billing.allowances.rules import free_of_trial, sum_by_meter, trial_left, trial_part
from billing.models import AllowanceShare, PriceVersion, Trial
from billing.periods import month_of
from console.base.accounts.models import Membership
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.conf import config
from metering.models import RunningMonth
from metering.services.month_usage import month_totals

# The value of `billing.collector` with which who has no payer has a trial.
BY_CARD = "stripe"
Months = dict[date, dict[str, int]]


def ensure_trials(organization_ids: Collection[str]) -> int:
    """Begins the trials of organizations that have none and whose owner proved an address.

    Where the address gave a trial before, theirs is empty. Locally an address needs no proof.
    Returns how many began. Needs the system's scope.
    """
    known = Trial.objects.filter(pk__in=list(organization_ids)).values_list("pk", flat=True)
    addresses = _owner_addresses(set(organization_ids) - set(known))
    if not addresses:
        return 0
    month = month_of(now())
    catalog = PriceVersion.objects.in_force(month).catalog()
    quantities = {m: str(price.free_quantity(month)) for m, price in catalog.prices.items()}
    given = Trial.objects.filter(address_sha256__in=list(addresses.values()))
    used = set(given.values_list("address_sha256", flat=True))
    trials = []
    for organization_id, sha256 in addresses.items():
        is_first = sha256 not in used
        used.add(sha256)
        trials.append(
            Trial(
                organization_id=organization_id,
                address_sha256=sha256 if is_first else None,
                quantities=quantities if is_first else {},
                month=month,
            )
        )
    # Another worker may begin the same ones at this moment; what is left out comes with the next
    # look.
    return len(Trial.objects.bulk_create(trials, ignore_conflicts=True))


def trials_left(month: date, organization_ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Organization → meter → what is left of its trial at a month's beginning.

    Those without a trial are not in it; those whose address gave it elsewhere have an empty one.
    Needs the system's scope, or that of the only organization.
    """
    trials = Trial.objects.in_bulk(list(organization_ids))
    taken = _taken_parts(month, trials)
    used = _used_before(month, trials)
    payers = {
        before: payers_of_month(before, list(trials))
        for before in sorted({before for months in used.values() for before in months})
    }
    free = {before: free_before_payers(before, list(trials)) for before in payers}
    left = {}
    for organization_id, trial in trials.items():
        rest = {meter: int(quantity) for meter, quantity in trial.quantities.items()}
        months = used.get(organization_id, {})
        for before in sorted(months.keys() | taken.get(organization_id, {}).keys()):
            if before in taken.get(organization_id, {}):
                part: Mapping[str, int] = taken[organization_id][before]
            elif before < trial.month:
                continue
            elif organization_id in payers[before]:
                part = trial_part(rest, free[before].get(organization_id, {}))
            else:
                part = trial_part(rest, months[before])
            rest = trial_left(rest, part)
        left[organization_id] = rest
    return left


def free_so_far(organization_id: str) -> dict[str, int]:
    """Meter → what an organization without a payer used for nothing this month, as is known so far.

    That is its trial, and the traffic that slipped past the trial's end. Empty where somebody pays
    or paid for it this month, or there are no trials. Needs its scope.
    """
    month = month_of(now())
    if config().billing.collector != BY_CARD or payers_of_month(month, [organization_id]):
        return {}
    used = sum_by_meter(month_totals(month, [organization_id])[organization_id])
    left = trials_left(month, [organization_id]).get(organization_id, {})
    return {meter: n for meter, n in free_of_trial(left, used).items() if n}


def _owner_addresses(organization_ids: Collection[str]) -> dict[str, str]:
    """Organization → the hash of the address of its first owner who proved one."""
    owners = Membership.objects.filter(
        organization_id__in=list(organization_ids), role=Role.OWNER.value
    )
    if not config().local:
        owners = owners.exclude(user__email_verified_at=None)
    addresses: dict[str, str] = {}
    for organization_id, email in owners.order_by("created_at", "pk").values_list(
        "organization_id", "user__email"
    ):
        addresses.setdefault(organization_id, address_sha256(email))
    return addresses


def _taken_parts(month: date, organization_ids: Collection[str]) -> dict[str, Months]:
    """What invoiced months before took of trials; where a payer paid, before the payer came."""
    shares = AllowanceShare.objects.filter(
        organization_id__in=list(organization_ids), month__lt=month
    )
    taken: dict[str, Months] = {}
    for share in shares:
        part = taken.setdefault(share.organization_id, {}).setdefault(share.month, {})
        part[share.meter] = int(share.of_trial)
    return taken


def _used_before(month: date, organization_ids: Collection[str]) -> dict[str, Months]:
    rows = RunningMonth.objects.filter(organization_id__in=list(organization_ids), month__lt=month)
    sums = rows.values_list("organization_id", "month", "meter").annotate(total=Sum("quantity"))
    used: dict[str, Months] = {}
    for organization_id, before, meter, total in sums.order_by():
        used.setdefault(organization_id, {}).setdefault(before, {})[meter] = int(total)
    return used

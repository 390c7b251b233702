"""Without a payment method the end of the trial is a hard stop: traffic is refused behind it."""

from __future__ import annotations

import logging

from django.db import transaction

from billing.allowances.payers import has_payer_locked
from billing.allowances.rules import is_used_up, sum_by_meter
from billing.allowances.services import BY_CARD
from billing.allowances.trials import ensure_trials, trials_left
from billing.models import PayerOrganization
from billing.periods import month_of
from console.base.accounts.choices import TrafficLimitKind, TrafficLimitSource
from console.base.accounts.models import Organization, TrafficLimit
from console.base.accounts.services import set_traffic_limit
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope
from metering.services.month_usage import month_totals

logger = logging.getLogger(__name__)

REASON = (
    "The free allowance is used up, and the organization has no payment method. An owner adds one "
    "under Billing; then produce and fetch go on."
)


def enforce_allowances() -> int:
    """Refuses the traffic of who has used a trial up, and lifts that for everybody else; returns
    how many organizations that changed for.

    Where no cards are charged there is no such limit.
    """
    with system_scope():
        limits = TrafficLimit.objects.filter(source=TrafficLimitSource.ALLOWANCE)
        limited = set(limits.values_list("organization_id", flat=True))
        exhausted = _exhausted() if config().billing.collector == BY_CARD else set()
    changed = sum(_limit_safely(owner, refuse=True) for owner in sorted(exhausted - limited))
    return changed + sum(
        _limit_safely(owner, refuse=False) for owner in sorted(limited - exhausted)
    )


def _exhausted() -> set[str]:
    """The organizations without a payer that have nothing left of a trial."""
    paid = PayerOrganization.objects.filter(until=None).values("organization_id")
    rows = Organization.objects.filter(closed_at=None).exclude(pk__in=paid)
    without = list(rows.values_list("pk", flat=True))
    ensure_trials(without)
    month = month_of(now())
    left = trials_left(month, without)
    totals = month_totals(month, without)
    return {
        organization_id
        for organization_id in without
        if is_used_up(left.get(organization_id, {}), sum_by_meter(totals[organization_id]))
    }


def _limit_safely(organization_id: str, *, refuse: bool) -> bool:
    try:
        with transaction.atomic():
            return _limit(organization_id, refuse=refuse)
    except Exception:
        # One organization must not keep the others from their limits.
        logger.exception("allowances.failed", extra={"organization": organization_id})
        return False


def _limit(organization_id: str, *, refuse: bool) -> bool:
    with organization_scope(organization_id):
        # Who has given a card a moment ago is refused nothing.
        if refuse and has_payer_locked(organization_id):
            return False
        return set_traffic_limit(
            organization_id=organization_id,
            source=TrafficLimitSource.ALLOWANCE,
            kind=TrafficLimitKind.REFUSE if refuse else None,
            reason=REASON if refuse else "",
        )

"""Without a payment method the end of the trial is a hard stop: traffic is refused behind it.

The organization gets a mail then, and one before, once little is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from django.db import transaction

from billing.allowances.notices import note_notice
from billing.allowances.payers import (
    assign_waiting_payer,
    has_payer_locked,
    waiting_organizations,
)
from billing.allowances.rules import is_nearly_used_up, is_used_up, sum_by_meter
from billing.allowances.trials import BY_CARD, ensure_trials, trials_left
from billing.choices import TrialNoticeKind
from billing.models import CardAccount, PayerOrganization, Trial, TrialNotice
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
    "under Invoices, Payment; then produce and fetch go on."
)
REASON_REFUSED = (
    "The free allowance is used up, and the organization's card pays for no further organization. "
    "The page Invoices, Payment says why; with another card produce and fetch go on."
)


@dataclass(frozen=True, slots=True)
class TrialsLeft:
    """Organizations without a payer: who has nothing left of a trial, and who has little left of
    one and has had no mail of it."""

    exhausted: set[str] = field(default_factory=set)
    with_little: set[str] = field(default_factory=set)


def enforce_allowances() -> int:
    """Refuses the traffic of who has used a trial up, and lifts that for everybody else; returns
    how many organizations that changed for. Who has little left gets a mail.

    Where no cards are charged there is no such limit.
    """
    by_card = config().billing.collector == BY_CARD
    with system_scope():
        waiting = waiting_organizations() if by_card else []
    for owner in waiting:
        _done_safely(owner, partial(assign_waiting_payer, owner))
    with system_scope():
        limits = TrafficLimit.objects.filter(source=TrafficLimitSource.ALLOWANCE)
        limited = dict(limits.values_list("organization_id", "reason"))
        trials = _trials_left() if by_card else TrialsLeft()
        cards = CardAccount.objects.filter(pk__in=trials.exhausted).exclude(method_id="")
        with_card = set(cards.values_list("pk", flat=True))
    exhausted = trials.exhausted
    for owner in sorted(trials.with_little - exhausted):
        _done_safely(owner, partial(_notify, owner))
    reasons = {o: REASON_REFUSED if o in with_card else REASON for o in sorted(exhausted)}
    refused = [
        _done_safely(owner, partial(_limit, owner, reason))
        for owner, reason in reasons.items()
        if limited.get(owner) != reason
    ]
    lifted = [
        _done_safely(owner, partial(_limit, owner, ""))
        for owner in sorted(limited.keys() - reasons)
    ]
    return sum(refused) + sum(lifted)


def _trials_left() -> TrialsLeft:
    paid = PayerOrganization.objects.filter(until=None).values("organization_id")
    rows = Organization.objects.filter(closed_at=None).exclude(pk__in=paid)
    without = list(rows.values_list("pk", flat=True))
    ensure_trials(without)
    month = month_of(now())
    left = trials_left(month, without)
    totals = month_totals(month, without)
    used = {owner: sum_by_meter(totals[owner]) for owner in without}
    notices = TrialNotice.objects.filter(kind=TrialNoticeKind.NEARLY_USED)
    trials = Trial.objects.filter(pk__in=without).exclude(quantities={})
    trials = trials.exclude(pk__in=notices.values("organization_id"))
    return TrialsLeft(
        {owner for owner in without if is_used_up(left.get(owner, {}), used[owner])},
        {
            owner
            for owner, quantities in trials.values_list("pk", "quantities")
            if is_nearly_used_up(_as_numbers(quantities), left.get(owner, {}), used[owner])
        },
    )


def _as_numbers(quantities: Mapping[str, str]) -> dict[str, int]:
    return {meter: int(quantity) for meter, quantity in quantities.items()}


def _notify(organization_id: str) -> bool:
    with organization_scope(organization_id):
        # Who has given a card a moment ago needs no trial.
        if has_payer_locked(organization_id):
            return False
        note_notice(organization_id, TrialNoticeKind.NEARLY_USED)
        return True


def _done_safely(organization_id: str, change: Callable[[], bool]) -> bool:
    try:
        with transaction.atomic():
            return change()
    except Exception:
        # One organization must not keep the others from their limits.
        logger.exception("allowances.failed", extra={"organization": organization_id})
        return False


def _limit(organization_id: str, reason: str) -> bool:
    """Refuses an organization's traffic for a reason, or lifts that where there is none."""
    with organization_scope(organization_id):
        # Who has given a card a moment ago is refused nothing.
        if reason and has_payer_locked(organization_id):
            return False
        limits = TrafficLimit.objects.filter(source=TrafficLimitSource.ALLOWANCE)
        is_new = not limits.filter(organization_id=organization_id).exists()
        changed = set_traffic_limit(
            organization_id=organization_id,
            source=TrafficLimitSource.ALLOWANCE,
            kind=TrafficLimitKind.REFUSE if reason else None,
            reason=reason,
        )
        # Without a trial no address is proved yet, which another mail asks for.
        if changed and reason and is_new and Trial.objects.filter(pk=organization_id).exists():
            note_notice(organization_id, TrialNoticeKind.USED_UP)
        return changed

"""Spending against budgets: events, mails, and the suspension of produce."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.db import transaction

from billing.budgets import rules
from billing.budgets.notices import enqueue_mail, suspension_reason
from billing.choices import BudgetEventKind
from billing.models import Budget, BudgetEvent
from billing.periods import month_of
from billing.spending import spent_by_organization
from console.base.accounts.services import set_produce_suspension
from console.base.common import locks
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope, system_scope

logger = logging.getLogger(__name__)

LOCK = "budgets"


@dataclass(frozen=True, slots=True)
class Spending:
    """What an organization spent of a month, in minor units, as known at a moment."""

    month: date
    spent_minor: int
    known_at: datetime


def evaluate_budgets() -> int:
    """Evaluates every organization with a budget; returns how many had spent another amount.

    What is spent is read for all of them at once, and only where it changed is anything written.
    """
    known_at = now()
    month = month_of(known_at)
    with system_scope():
        evaluated_amounts: dict[str, set[tuple[date, int]]] = {}
        rows = Budget.objects.current().values_list("organization_id", "month", "spent_minor")
        for organization_id, evaluated, spent_minor in rows:
            evaluated_amounts.setdefault(organization_id, set()).add((evaluated, spent_minor))
        spent = spent_by_organization(month, sorted(evaluated_amounts))
    changed = {
        organization_id: Spending(month, spent_minor, known_at)
        for organization_id, spent_minor in spent.items()
        if evaluated_amounts[organization_id] != {(month, spent_minor)}
    }
    return sum(map(_evaluate_safely, changed, changed.values()))


def _evaluate_safely(organization_id: str, spending: Spending) -> bool:
    try:
        with transaction.atomic():
            return evaluate_organization(organization_id=organization_id, spending=spending)
    except Exception:
        # One organization must not keep the others from their budgets.
        logger.exception("budgets.failed", extra={"organization": organization_id})
        return False


def evaluate_organization(*, organization_id: str, spending: Spending) -> bool:
    """Evaluates one organization's budgets; returns whether it did.

    It does nothing where somebody changes them at this moment (that evaluates them too). A budget
    that was evaluated with later knowledge keeps that result.
    """
    with organization_scope(organization_id):
        if not locks.try_lock(LOCK, organization_id):
            return False
        budgets = locked_budgets(organization_id)
        for budget in budgets:
            if budget.evaluated_at < spending.known_at:
                apply_spending(budget, spending)
        follow_budgets(organization_id, budgets)
    return True


def locked_budgets(organization_id: str) -> list[Budget]:
    """An organization's current budgets with locked rows. The caller holds the organization's
    advisory lock."""
    rows = Budget.objects.for_organization(organization_id).current()
    return list(rows.select_for_update().order_by("created_at", "id"))


def apply_spending(budget: Budget, spending: Spending) -> None:
    """Writes one budget's state for this spending, with its events; enqueues at most one mail."""
    facts = {"spent_minor": spending.spent_minor, "amount_minor": budget.amount_minor}
    budget.month = spending.month
    budget.spent_minor = spending.spent_minor
    budget.evaluated_at = spending.known_at
    budget.state = rules.state_of(**facts, thresholds=budget.thresholds)
    holding = rules.is_holding(**facts, action=budget.action)
    suspends = holding and budget.suspended_at is None
    resumes = not holding and budget.suspended_at is not None
    if suspends or resumes:
        budget.suspended_at = now() if holding else None
    budget.save()
    reached = _note_thresholds(
        budget, rules.reached_thresholds(**facts, thresholds=budget.thresholds)
    )
    if resumes:
        note_event(budget, BudgetEventKind.RESUMED)
    # At most one mail: the suspension if there is one, else the highest threshold.
    if suspends:
        enqueue_mail(note_event(budget, BudgetEventKind.SUSPENDED))
    elif reached:
        enqueue_mail(reached[-1])


def follow_budgets(organization_id: str, budgets: Sequence[Budget]) -> None:
    """Suspends the organization's produce with the reason of its oldest suspending budget, or
    lifts the suspension where there is no such budget."""
    reasons = (suspension_reason(budget) for budget in budgets if budget.suspended_at is not None)
    set_produce_suspension(organization_id=organization_id, reason=next(reasons, None))


def note_event(budget: Budget, kind: BudgetEventKind, **more: int | None) -> BudgetEvent:
    """Adds an event with the budget's present settings and spending."""
    return BudgetEvent.objects.create(**_event_facts(budget, kind), **more)


def _note_thresholds(budget: Budget, reached: Sequence[int]) -> list[BudgetEvent]:
    """Adds an event for each reached threshold that has none for this month and amount.

    Returns the new events, by ascending threshold.
    """
    earlier = BudgetEvent.objects.filter(
        budget=budget,
        kind=BudgetEventKind.THRESHOLD_REACHED,
        month=budget.month,
        amount_minor=budget.amount_minor,
    )
    noted = set(earlier.values_list("threshold", flat=True))
    facts = _event_facts(budget, BudgetEventKind.THRESHOLD_REACHED)
    return BudgetEvent.objects.bulk_create(
        BudgetEvent(**facts, threshold=threshold) for threshold in reached if threshold not in noted
    )


def _event_facts(budget: Budget, kind: BudgetEventKind) -> Mapping[str, object]:
    return {
        "organization_id": budget.organization_id,
        "budget": budget,
        "kind": kind,
        "month": budget.month,
        "spent_minor": budget.spent_minor,
        "amount_minor": budget.amount_minor,
        "action": budget.action,
        "generation": budget.generation,
    }

"""Budgets as people set them. A change is evaluated at once, in the same transaction.

The caller holds the organization's lock (`lock_budgets`) before any of its budgets' rows.
"""

from __future__ import annotations

from typing import Any

from billing.budgets import rules
from billing.budgets.caps import cap_of_budget
from billing.budgets.evaluation import (
    LOCK,
    Spending,
    apply_spending,
    follow_budgets,
    locked_budgets,
    note_event,
)
from billing.choices import BudgetEventKind, BudgetState
from billing.models import Budget, PriceVersion
from billing.periods import month_of
from billing.spending import spent_by_organization
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import changes_of, record_audit
from console.base.common.clock import now
from console.base.limits.services import require_room


def lock_budgets(*, organization_id: str) -> None:
    """Waits for whoever changes or evaluates the organization's budgets, and keeps others out."""
    locks.lock(LOCK, organization_id)


def create_budget(
    *, actor: Actor, name: str, amount_minor: int, thresholds: list[int], action: str
) -> Budget:
    """Sets a new budget, from the current month on. Raises `LimitReached`."""
    organization_id = actor.organization_id
    lock_budgets(organization_id=organization_id)
    used = budgets_used(organization_id)
    require_room("budgets", organization_id=organization_id, used=used)
    spending = _current_spending(organization_id)
    budget = Budget.objects.create(
        organization_id=organization_id,
        name=name,
        amount_minor=amount_minor,
        currency=PriceVersion.objects.in_force(spending.month).currency,
        thresholds=sorted(set(thresholds)),
        action=action,
        month=spending.month,
        evaluated_at=spending.known_at,
        spent_minor=spending.spent_minor,
        state=BudgetState.OK,
    )
    note_event(budget, BudgetEventKind.CREATED, base_minor=spending.spent_minor)
    _record_change(actor, budget, "create", _settings_of(budget))
    return _evaluate_budget(budget, spending)


def budgets_used(organization_id: str, cluster_id: str = "") -> int:
    """Budgets that hold; they are the organization's, not a cluster's."""
    return Budget.objects.for_organization(organization_id).current().count()


def update_budget(*, actor: Actor, budget: Budget, changes: dict[str, Any]) -> Budget:
    """Changes a budget whose row is locked. Produce goes on at once where that lifts it."""
    if "thresholds" in changes:
        changes = {**changes, "thresholds": sorted(set(changes["thresholds"]))}
    changed = {name: value for name, value in changes.items() if getattr(budget, name) != value}
    if not changed:
        return budget
    spending = _current_spending(budget.organization_id)
    # Read before the change: the cap under the settings that end here.
    cap_minor = cap_of_budget(budget.pk, spending.month)
    detail = changes_of(budget, changed)
    for name, value in changed.items():
        setattr(budget, name, value)
    budget.generation += 1
    budget.month, budget.spent_minor = spending.month, spending.spent_minor
    base_minor = rules.base_of(spent_minor=spending.spent_minor, cap_minor=cap_minor)
    note_event(budget, BudgetEventKind.CHANGED, base_minor=base_minor)
    _record_change(actor, budget, "update", detail)
    return _evaluate_budget(budget, spending)


def remove_budget(*, actor: Actor, budget: Budget) -> None:
    """Ends a budget whose row is locked, and lifts the suspension that it caused."""
    budget.removed_at = now()
    budget.suspended_at = None
    budget.generation += 1
    budget.save()
    note_event(budget, BudgetEventKind.REMOVED)
    _record_change(actor, budget, "remove", {"name": budget.name})
    follow_budgets(budget.organization_id, locked_budgets(budget.organization_id))


def _evaluate_budget(budget: Budget, spending: Spending) -> Budget:
    apply_spending(budget, spending)
    follow_budgets(budget.organization_id, locked_budgets(budget.organization_id))
    return budget


def _current_spending(organization_id: str) -> Spending:
    """What the organization has spent of the current month."""
    known_at = now()
    month = month_of(known_at)
    spent = spent_by_organization(month, [organization_id])
    return Spending(month, spent[organization_id], known_at)


def _settings_of(budget: Budget) -> dict[str, Any]:
    names = ("name", "amount_minor", "thresholds", "action")
    return {name: getattr(budget, name) for name in names}


def _record_change(actor: Actor, budget: Budget, verb: str, detail: dict[str, Any]) -> None:
    record_audit(
        actor=actor,
        action=f"budget.{verb}",
        target_type="budget",
        target_id=budget.pk,
        detail=detail,
    )

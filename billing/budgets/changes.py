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
from billing.choices import BudgetAction, BudgetEventKind, BudgetState
from billing.models import Budget, PriceVersion
from billing.models.budget import THROTTLE_DEFAULT
from billing.periods import month_of
from billing.spending import spent_by_organization
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import changes_of, record_audit
from console.base.common.clock import now
from console.base.common.errors import FieldError, ValidationFailed
from console.base.limits.services import require_room


def lock_budgets(*, organization_id: str) -> None:
    """Waits for whoever changes or evaluates the organization's budgets, and keeps others out."""
    locks.lock(LOCK, organization_id)


def create_budget(
    *,
    actor: Actor,
    name: str,
    amount_minor: int,
    thresholds: list[int],
    action: str,
    throttle_bytes_per_s: int | None = None,
) -> Budget:
    """Sets a new budget, from the current month on. Raises `LimitReached`.

    `throttle_bytes_per_s` is for the action `throttle` alone, which has a default. Raises
    `ValidationFailed` where another action has one.
    """
    organization_id = actor.organization_id
    throttle_bytes_per_s = _settle_rate(action, throttle_bytes_per_s)
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
        throttle_bytes_per_s=throttle_bytes_per_s,
        month=spending.month,
        evaluated_at=spending.known_at,
        spent_minor=spending.spent.total_minor,
        kept_minor=spending.spent.kept_minor,
        state=BudgetState.OK,
    )
    note_event(budget, BudgetEventKind.CREATED, base_minor=rules.base_of(spending.spent, None))
    _record_change(actor, budget, "create", _settings_of(budget))
    return _evaluate_budget(budget, spending)


def budgets_used(organization_id: str, cluster_id: str = "") -> int:
    """Budgets that hold; they are the organization's, not a cluster's."""
    return Budget.objects.for_organization(organization_id).current().count()


def update_budget(*, actor: Actor, budget: Budget, changes: dict[str, Any]) -> Budget:
    """Changes a budget whose row is locked. Traffic goes on at once where that lifts its limit.

    A budget that was set under the promise before decision 0016 is from now on one of today's.
    """
    if "thresholds" in changes:
        changes = {**changes, "thresholds": sorted(set(changes["thresholds"]))}
    action = changes.get("action", budget.action)
    rate = changes.get("throttle_bytes_per_s")
    if rate is None and action == budget.action:
        rate = budget.throttle_bytes_per_s
    changes = {**changes, "throttle_bytes_per_s": _settle_rate(action, rate)}
    changed = {name: value for name, value in changes.items() if getattr(budget, name) != value}
    if not changed:
        return budget
    spending = _current_spending(budget.organization_id)
    # Read before the change: the cap under the settings that end here.
    cap = cap_of_budget(budget.pk, spending.month)
    detail = changes_of(budget, changed)
    for name, value in changed.items():
        setattr(budget, name, value)
    budget.generation += 1
    budget.covers_all_until = None
    _note_changed(budget, spending, base_minor=rules.base_of(spending.spent, cap))
    _record_change(actor, budget, "update", detail)
    return _evaluate_budget(budget, spending)


def _settle_rate(action: str, bytes_per_s: int | None) -> int | None:
    """The rate of a budget with this action. Raises `ValidationFailed`."""
    if action == BudgetAction.THROTTLE:
        return bytes_per_s or THROTTLE_DEFAULT
    if bytes_per_s is not None:
        detail = "Only a budget with the action throttle has a rate."
        raise ValidationFailed(errors=[FieldError("/throttle_bytes_per_s", "invalid", detail)])
    return None


def _note_changed(budget: Budget, spending: Spending, *, base_minor: int) -> None:
    """Adds the event of new settings, with what is spent now.

    The month in the row stays: the evaluation that follows compares it.
    """
    evaluated = budget.month
    budget.month = spending.month
    budget.spent_minor = spending.spent.total_minor
    budget.kept_minor = spending.spent.kept_minor
    note_event(budget, BudgetEventKind.CHANGED, base_minor=base_minor)
    budget.month = evaluated


def remove_budget(*, actor: Actor, budget: Budget) -> None:
    """Ends a budget whose row is locked, and lifts the limit of traffic that it caused."""
    budget.removed_at = now()
    budget.acting_as, budget.acting_since = "", None
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
    names = ("name", "amount_minor", "thresholds", "action", "throttle_bytes_per_s")
    return {name: getattr(budget, name) for name in names}


def _record_change(actor: Actor, budget: Budget, verb: str, detail: dict[str, Any]) -> None:
    record_audit(
        actor=actor,
        action=f"budget.{verb}",
        target_type="budget",
        target_id=budget.pk,
        detail=detail,
    )

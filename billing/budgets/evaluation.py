"""Spending against budgets: events, mails, and the limit of traffic."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.db import DatabaseError, connection, transaction

from billing.budgets import rules
from billing.budgets.notices import enqueue_mail, limit_reason
from billing.choices import BudgetAction, BudgetEventKind
from billing.models import Budget, BudgetEvent
from billing.periods import month_of
from billing.rating import Spent
from billing.spending import spent_by_organization
from console.base.accounts.choices import TrafficLimitKind, TrafficLimitSource
from console.base.accounts.services import set_traffic_limit
from console.base.accounts.traffic import LimitInForce, strictest
from console.base.common import locks
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope, system_scope

logger = logging.getLogger(__name__)

LOCK = "budgets"
ACTS = {
    BudgetAction.SUSPEND.value: BudgetEventKind.SUSPENDED,
    BudgetAction.THROTTLE.value: BudgetEventKind.THROTTLED,
}


WRITE_AMOUNTS = """
WITH spent AS (
    SELECT * FROM unnest(%s::text[], %s::int[], %s::bigint[], %s::bigint[])
        AS spent (id, generation, spent_minor, kept_minor)
), unlocked AS (
    SELECT id FROM billing_budget JOIN spent USING (id, generation)
    WHERE evaluated_at < %s AND removed_at IS NULL
    FOR UPDATE OF billing_budget SKIP LOCKED
)
UPDATE billing_budget AS budget
SET spent_minor = spent.spent_minor, kept_minor = spent.kept_minor, evaluated_at = %s
FROM spent JOIN unlocked USING (id) WHERE budget.id = spent.id
"""


@dataclass(frozen=True, slots=True)
class Spending:
    """What an organization spent of a month, as known at a moment."""

    month: date
    spent: Spent
    known_at: datetime


def evaluate_budgets() -> int:
    """Evaluates every organization with a budget; returns how many had spent another amount.

    What is spent is read for all of them at once, and only where it changed is anything written.
    First come those for whom something happens, one by one; what the others spent is written with
    one statement.
    """
    known_at = now()
    month = month_of(known_at)
    budgets_of: dict[str, list[Budget]] = {}
    with system_scope():
        for budget in Budget.objects.current():
            budgets_of.setdefault(budget.organization_id, []).append(budget)
        spent = spent_by_organization(month, sorted(budgets_of))
    changed = {
        organization_id: Spending(month, of_month, known_at)
        for organization_id, of_month in spent.items()
        if any(
            (budget.month, budget.spent_minor) != (month, of_month.total_minor)
            for budget in budgets_of[organization_id]
        )
    }
    eventful = {
        organization_id: spending
        for organization_id, spending in changed.items()
        if any(_has_consequences(budget, spending) for budget in budgets_of[organization_id])
    }
    done = sum(map(_evaluate_safely, eventful, eventful.values()))
    return done + _write_amounts(
        {
            organization_id: (spending, budgets_of[organization_id])
            for organization_id, spending in changed.items()
            if organization_id not in eventful
        }
    )


def _has_consequences(budget: Budget, spending: Spending) -> bool:
    """Whether more than the amount follows for a budget: an event, a mail or another limit."""
    facts = {
        "spent_minor": spending.spent.total_minor,
        "amount_minor": budget.amount_minor,
    }
    earlier = {"spent_minor": budget.spent_minor, "amount_minor": budget.amount_minor}
    return (
        budget.month != spending.month
        or bool(budget.acting_as)
        or bool(rules.acts_as(**facts, action=budget.action))
        or budget.state != rules.state_of(**facts, thresholds=budget.thresholds)
        or rules.reached_thresholds(**facts, thresholds=budget.thresholds)
        != rules.reached_thresholds(**earlier, thresholds=budget.thresholds)
    )


def _write_amounts(quiet: Mapping[str, tuple[Spending, Sequence[Budget]]]) -> int:
    """Writes what organizations spent into budgets of which nothing else changes; returns how many
    organizations that were.

    A budget that was changed or evaluated since it was read keeps what it has, and so does one that
    somebody changes at this moment.
    """
    rows = [
        (budget.pk, budget.generation, spending.spent.total_minor, spending.spent.kept_minor)
        for spending, budgets in quiet.values()
        for budget in budgets
    ]
    if not rows:
        return 0
    known_at = next(iter(quiet.values()))[0].known_at
    columns = [list(column) for column in zip(*rows, strict=True)]
    try:
        with system_scope(), connection.cursor() as cursor:
            cursor.execute(WRITE_AMOUNTS, [*columns, known_at, known_at])
    except DatabaseError:
        # They are evaluated again in half a minute; the others are done.
        logger.exception("budgets.amounts_failed", extra={"budgets": len(rows)})
        return 0
    return len(quiet)


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
    spent_minor = spending.spent.total_minor
    facts = {"spent_minor": spent_minor, "amount_minor": budget.amount_minor}
    # What a budget does is said for each month anew.
    acted_before = bool(budget.acting_as)
    acted_as = budget.acting_as if budget.month == spending.month else ""
    budget.month = spending.month
    budget.spent_minor, budget.kept_minor = spent_minor, spending.spent.kept_minor
    budget.evaluated_at = spending.known_at
    budget.state = rules.state_of(**facts, thresholds=budget.thresholds)
    budget.acting_as = rules.acts_as(**facts, action=budget.action)
    acts_anew = bool(budget.acting_as) and budget.acting_as != acted_as
    resumes = acted_before and not budget.acting_as
    if acts_anew or resumes:
        budget.acting_since = now() if acts_anew else None
    budget.save()
    reached = _note_thresholds(
        budget, rules.reached_thresholds(**facts, thresholds=budget.thresholds)
    )
    if resumes:
        note_event(budget, BudgetEventKind.RESUMED)
    # At most one mail: that it acts, if it does, else the highest threshold.
    if acts_anew:
        enqueue_mail(note_event(budget, ACTS[budget.acting_as]))
    elif reached:
        enqueue_mail(reached[-1])


def follow_budgets(organization_id: str, budgets: Sequence[Budget]) -> None:
    """Limits the organization's traffic as the strictest of its budgets that act says, of equal
    ones the oldest; lifts the limit where none acts."""
    limit = strictest(_limit_of(budget) for budget in budgets if budget.acting_as)
    if limit is None:
        set_traffic_limit(organization_id=organization_id, source=TrafficLimitSource.BUDGET)
        return
    set_traffic_limit(
        organization_id=organization_id,
        source=TrafficLimitSource.BUDGET,
        kind=TrafficLimitKind(limit.kind),
        reason=limit.reason,
        bytes_per_s=limit.bytes_per_s,
    )


def _limit_of(budget: Budget) -> LimitInForce:
    covers_all = rules.covers_all(budget.covers_all_until, budget.month)
    kind = rules.limit_kind(acting_as=budget.acting_as, covers_all=covers_all)
    rate = budget.throttle_bytes_per_s if kind == TrafficLimitKind.THROTTLE else None
    return LimitInForce(kind.value, limit_reason(budget, kind), rate)


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
        "kept_minor": budget.kept_minor,
        "amount_minor": budget.amount_minor,
        "action": budget.action,
        "throttle_bytes_per_s": budget.throttle_bytes_per_s,
        "covers_all_until": budget.covers_all_until,
        "generation": budget.generation,
    }

"""The most that a month is billed under budgets with the action *suspend*."""

from __future__ import annotations

from datetime import date

from billing.budgets.rules import cap_of
from billing.choices import BUDGET_SETTINGS, BudgetEventKind
from billing.models import BudgetEvent
from billing.periods import next_month, starts_at


def budget_caps(organization_id: str, month: date) -> int | None:
    """The most that an organisation is billed for a month before taxes, in minor units.

    None: no suspending budget was in force at its end (now, of the month that runs). `month` is any
    day of it. Reads in the caller's tenancy scope.
    """
    caps = [cap for cap in _caps(organization_id, month).values() if cap is not None]
    return min(caps, default=None)


def cap_of_budget(organization_id: str, budget_id: str, month: date) -> int | None:
    """The cap of one of them."""
    return _caps(organization_id, month).get(budget_id)


def _caps(organization_id: str, month: date) -> dict[str, int | None]:
    """By budget: what its settings at the month's end say."""
    first = month.replace(day=1)
    last_settings = (
        BudgetEvent.objects.filter(
            organization_id=organization_id,
            kind__in=BUDGET_SETTINGS,
            created_at__lt=starts_at(next_month(first)),
        )
        .order_by("budget_id", "-generation")
        .distinct("budget_id")
    )
    return {
        event.budget_id: cap_of(
            amount_minor=event.amount_minor,
            action=event.action,
            base_minor=(event.base_minor or 0) if event.month == first else 0,
        )
        for event in last_settings
        if event.kind != BudgetEventKind.REMOVED
    }

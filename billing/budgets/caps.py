"""The most that a month is billed under budgets with the action *suspend*."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from django.db import models

from billing.budgets.rules import cap_of
from billing.choices import BUDGET_SETTINGS, BudgetEventKind
from billing.models import BudgetEvent
from billing.periods import next_month, starts_at


def budget_caps(organization_id: str, month: date) -> int | None:
    """The most that an organization is billed for a month before taxes, in minor units.

    None where no suspending budget was in force at the month's end (now, for the current month).
    `month` is any day of it. Reads in the caller's tenancy scope.
    """
    return caps_by_organization([organization_id], month).get(organization_id)


def caps_by_organization(organization_ids: Collection[str], month: date) -> dict[str, int]:
    """`budget_caps` of many organizations, in one query; those without a cap are left out."""
    caps: dict[str, int] = {}
    for event in _last_settings(month).filter(organization_id__in=organization_ids):
        cap = _cap_of_event(event, month)
        if cap is not None:
            owner = event.organization_id
            caps[owner] = min(cap, caps.get(owner, cap))
    return caps


def cap_of_budget(budget_id: str, month: date) -> int | None:
    """The cap, in minor units, that one budget puts on a month; None where it puts none."""
    event = _last_settings(month).filter(budget_id=budget_id).first()
    return None if event is None else _cap_of_event(event, month)


def _last_settings(month: date) -> models.QuerySet[BudgetEvent]:
    """For each budget the event by which its settings at the month's end came into force.

    The highest generation wins, not the latest time: two changes may have one time.
    """
    end = starts_at(next_month(month))
    settings = BudgetEvent.objects.filter(kind__in=BUDGET_SETTINGS, created_at__lt=end)
    return settings.order_by("budget_id", "-generation").distinct("budget_id")


def _cap_of_event(event: BudgetEvent, month: date) -> int | None:
    if event.kind == BudgetEventKind.REMOVED:
        return None
    same_month = event.month == month.replace(day=1)
    return cap_of(
        amount_minor=event.amount_minor,
        action=event.action,
        base_minor=(event.base_minor or 0) if same_month else 0,
    )

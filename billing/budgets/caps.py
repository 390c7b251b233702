"""The limits that budgets with the action *suspend* set to the bill of a month.

They are computed from events, for any month, and stored nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from django.db.models import QuerySet

from billing.budgets.rules import Cap, covers_all
from billing.choices import BUDGET_SETTINGS, BudgetAction, BudgetEventKind
from billing.models import BudgetEvent
from billing.periods import next_month, starts_at

REFUSALS = (BudgetEventKind.SUSPENDED.value, BudgetEventKind.RESUMED.value)


def budget_caps(organization_id: str, month: date) -> list[Cap]:
    """The caps on an organization's month: of each suspending budget that was in force at the
    month's end (now, for the current month) one.

    `month` is any day of it. Reads in the caller's tenancy scope.
    """
    return _caps_of(_last_settings(month).filter(organization_id=organization_id), month)


def cap_of_budget(budget_id: str, month: date) -> Cap | None:
    """The cap that one budget puts on a month; None where it puts none."""
    caps = _caps_of(_last_settings(month).filter(budget_id=budget_id), month)
    return caps[0] if caps else None


def _last_settings(month: date) -> QuerySet[BudgetEvent]:
    """For each budget the event by which its settings at the month's end came into force.

    The highest generation wins, not the latest time: two changes may have one time.
    """
    end = starts_at(next_month(month))
    settings = BudgetEvent.objects.filter(kind__in=BUDGET_SETTINGS, created_at__lt=end)
    return settings.order_by("budget_id", "-generation").distinct("budget_id")


def _caps_of(settings: Iterable[BudgetEvent], month: date) -> list[Cap]:
    capping = [
        event
        for event in settings
        if event.kind != BudgetEventKind.REMOVED and event.action == BudgetAction.SUSPEND
    ]
    if not capping:
        return []
    first = month.replace(day=1)
    refusals = _last_refusals([event.budget_id for event in capping], first)
    return [_cap_of_event(event, first, refusals.get(event.budget_id)) for event in capping]


def _last_refusals(budget_ids: list[str], month: date) -> dict[str, BudgetEvent]:
    """For each budget the last event of the month by which it refused traffic or let it go on."""
    events = BudgetEvent.objects.filter(budget_id__in=budget_ids, kind__in=REFUSALS, month=month)
    latest = events.order_by("budget_id", "-generation", "-created_at", "-id")
    return {event.budget_id: event for event in latest.distinct("budget_id")}


def _cap_of_event(event: BudgetEvent, month: date, refusal: BudgetEvent | None) -> Cap:
    same_month = event.month == month
    return Cap(
        amount_minor=event.amount_minor,
        base_minor=(event.base_minor or 0) if same_month else 0,
        kept_minor=_kept_at_refusal(event, refusal, same_month=same_month),
        covers_all=covers_all(event.covers_all_until, month),
    )


def _kept_at_refusal(
    event: BudgetEvent, refusal: BudgetEvent | None, *, same_month: bool
) -> int | None:
    """What was kept had cost so much when traffic was refused under the settings of `event`."""
    if refusal is not None and refusal.generation == event.generation:
        return refusal.kept_minor if refusal.kind == BudgetEventKind.SUSPENDED else None
    # The budget was used up when it was set: it refused traffic at once, or went on refusing it.
    used_up = same_month and event.spent_minor >= event.amount_minor
    return event.kept_minor if used_up else None

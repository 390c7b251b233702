"""Endpoints of budgets."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch

from billing.api import budget_examples
from billing.api import budget_serializers as shapes
from billing.budgets import changes
from billing.models import Budget, BudgetEvent
from billing.models.budget import EVENTS_SHOWN
from console.base.common.actor import Permission
from console.base.common.api.views import (
    CreateAction,
    DestroyAction,
    ListAction,
    RetrieveAction,
    UpdateAction,
)

NEWEST_EVENTS = BudgetEvent.objects.order_by("-created_at", "-id")[:EVENTS_SHOWN]


class BudgetViewSet(ListAction, RetrieveAction, CreateAction, UpdateAction, DestroyAction):
    """Budgets of calendar months (UTC, before taxes), each with its newest events.

    Whoever has a role in the organization may see them: one with the action `suspend` stops
    clients.
    Owners, admins and the role billing change them.
    """

    queryset = Budget.objects.current().prefetch_related(
        Prefetch("events", NEWEST_EVENTS, to_attr="newest_events")
    )
    serializer_class = shapes.BudgetSerializer
    input_serializers = {
        "create": shapes.BudgetCreateSerializer,
        "partial_update": shapes.BudgetUpdateSerializer,
    }
    permissions_required = {
        "create": Permission.BILLING,
        "partial_update": Permission.BILLING,
        "destroy": Permission.BILLING,
    }
    lookup_value_regex = "bud_[a-z2-7]+"
    examples = budget_examples.BUDGETS

    def get_object(self) -> Any:
        """The budget. For a change, the lock of all budgets is taken first, before any row's lock:
        evaluation takes them in that order too, so the two cannot block each other."""
        if self.request.method not in {"GET", "HEAD", "OPTIONS"}:
            changes.lock_budgets(organization_id=self.organization_id)
        return super().get_object()

    def perform_create(self, data: dict[str, Any]) -> object:
        """Sets a budget. It counts from the beginning of the current month."""
        return self._with_events(changes.create_budget(actor=self.actor, **data))

    def perform_update(self, instance: Budget, data: dict[str, Any]) -> object:
        """Changes a budget. Traffic goes on at once where the budget is no longer exceeded."""
        changed = changes.update_budget(actor=self.actor, budget=instance, changes=data)
        return self._with_events(changed)

    def perform_destroy(self, instance: Budget) -> None:
        """Removes a budget, and lifts the limit of traffic that it caused."""
        changes.remove_budget(actor=self.actor, budget=instance)

    def _with_events(self, budget: Budget) -> Budget:
        """The row read again, with `newest_events`, so that the events of the change are in it."""
        row: Budget = self.get_queryset().get(pk=budget.pk)
        return row

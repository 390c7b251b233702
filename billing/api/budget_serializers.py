"""JSON shapes of budgets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers

from billing.choices import BudgetAction, BudgetEventKind, BudgetState
from billing.models import Budget, BudgetEvent
from billing.models.budget import (
    NAME_CHARS_MAX,
    THROTTLE_DEFAULT,
    THROTTLE_MAX,
    THROTTLE_MIN,
)
from console.base.common.api.lines import one_line

AMOUNT_MINOR_MAX = 10**15
THRESHOLD_MAX = 1_000
THRESHOLDS_MAX = 10
THRESHOLDS_DEFAULT = [50, 80, 100]
AMOUNT_HELP = "The budget for a calendar month, before taxes, in minor units (cents)."
THRESHOLDS_HELP = "Percentages of the amount. A mail is sent at each, once a month."
ACTION_HELP = (
    "What happens within minutes when it is used up. `suspend`: all clusters refuse produce and "
    "fetch; traffic (`ingress_bytes`, `egress_bytes`) that slips past is not billed, while storage "
    "and partitions that are kept go on being billed, also beyond the budget. `throttle`: each "
    "cluster slows both down to `throttle_bytes_per_s`; all of it is billed. Both end when the "
    "budget is raised, changed or removed, and with the month."
)
THROTTLE_HELP = (
    "Only with the action `throttle`: bytes a second of produce and fetch together, for each "
    f"cluster. {THROTTLE_DEFAULT} unless given."
)
COVERS_ALL_HELP = (
    "YYYY-MM: through the end of this month a budget with the action `suspend` covers storage and "
    "partitions, too, and refuses produce alone, as was promised when it was set. Null for budgets "
    "that were set or changed since."
)


class BudgetEventSerializer(serializers.ModelSerializer[BudgetEvent]):
    """Something that happened to a budget, and what held at that moment."""

    kind = serializers.ChoiceField(choices=BudgetEventKind.choices)
    month = serializers.SerializerMethodField(help_text="YYYY-MM.")
    threshold = serializers.IntegerField(
        allow_null=True, help_text="Which threshold was reached, in percent; null for other kinds."
    )
    action = serializers.ChoiceField(choices=BudgetAction.choices)

    class Meta:
        model = BudgetEvent
        fields = (
            "id",
            "kind",
            "month",
            "threshold",
            "spent_minor",
            "amount_minor",
            "action",
            "throttle_bytes_per_s",
            "created_at",
        )
        read_only_fields = fields

    def get_month(self, event: BudgetEvent) -> str:
        """The month that the event belongs to, as `YYYY-MM`."""
        return f"{event.month:%Y-%m}"


class BudgetSerializer(serializers.ModelSerializer[Budget]):
    """A budget, its state in the current month, and its newest events."""

    thresholds = serializers.ListField(child=serializers.IntegerField(), help_text=THRESHOLDS_HELP)
    action = serializers.ChoiceField(choices=BudgetAction.choices, help_text=ACTION_HELP)
    state = serializers.ChoiceField(
        choices=BudgetState.choices,
        help_text="`warned` from the lowest threshold on, `exceeded` when all of it is spent.",
    )
    month = serializers.SerializerMethodField(help_text="YYYY-MM, of `state` and `spent_minor`.")
    spent_minor = serializers.IntegerField(
        help_text="What is spent in the month so far, before taxes; a few minutes old."
    )
    throttle_bytes_per_s = serializers.IntegerField(allow_null=True, help_text=THROTTLE_HELP)
    suspended_at = serializers.SerializerMethodField(
        help_text="Since when this budget has traffic refused; null where it does not."
    )
    throttled_at = serializers.SerializerMethodField(
        help_text="Since when this budget has traffic slowed down; null where it does not."
    )
    covers_all_until = serializers.SerializerMethodField(help_text=COVERS_ALL_HELP)
    kept_minor = serializers.IntegerField(
        help_text="The part of it that is storage and partitions, which cost while they are kept."
    )
    events = BudgetEventSerializer(
        source="newest_events", many=True, help_text="The newest events, the latest first."
    )

    class Meta:
        model = Budget
        fields = (
            "id",
            "name",
            "amount_minor",
            "currency",
            "thresholds",
            "action",
            "throttle_bytes_per_s",
            "state",
            "month",
            "spent_minor",
            "kept_minor",
            "suspended_at",
            "throttled_at",
            "covers_all_until",
            "evaluated_at",
            "generation",
            "created_at",
            "events",
        )
        read_only_fields = fields

    def get_suspended_at(self, budget: Budget) -> datetime | None:
        """Since when it has traffic refused."""
        return budget.acting_since if budget.acting_as == BudgetAction.SUSPEND else None

    def get_throttled_at(self, budget: Budget) -> datetime | None:
        """Since when it has traffic slowed down."""
        return budget.acting_since if budget.acting_as == BudgetAction.THROTTLE else None

    def get_covers_all_until(self, budget: Budget) -> str | None:
        """The last month of the promise under which it was set, as `YYYY-MM`."""
        return None if budget.covers_all_until is None else f"{budget.covers_all_until:%Y-%m}"

    def get_month(self, budget: Budget) -> str:
        """The month of the last evaluation, as `YYYY-MM`."""
        return f"{budget.month:%Y-%m}"


class BudgetUpdateSerializer(serializers.Serializer[Any]):
    """The settings to change. Settings that are left out stay as they are."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, required=False, validators=[one_line])
    amount_minor = serializers.IntegerField(
        min_value=1, max_value=AMOUNT_MINOR_MAX, required=False, help_text=AMOUNT_HELP
    )
    thresholds = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=THRESHOLD_MAX),
        max_length=THRESHOLDS_MAX,
        required=False,
        help_text=THRESHOLDS_HELP,
    )
    action = serializers.ChoiceField(
        choices=BudgetAction.choices, required=False, help_text=ACTION_HELP
    )
    throttle_bytes_per_s = serializers.IntegerField(
        min_value=THROTTLE_MIN,
        max_value=THROTTLE_MAX,
        required=False,
        allow_null=True,
        help_text=THROTTLE_HELP,
    )


class BudgetCreateSerializer(BudgetUpdateSerializer):
    """The settings of a new budget."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, validators=[one_line])
    amount_minor = serializers.IntegerField(
        min_value=1, max_value=AMOUNT_MINOR_MAX, help_text=AMOUNT_HELP
    )
    thresholds = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=THRESHOLD_MAX),
        max_length=THRESHOLDS_MAX,
        default=THRESHOLDS_DEFAULT,
        help_text=THRESHOLDS_HELP,
    )
    action = serializers.ChoiceField(
        choices=BudgetAction.choices, default=BudgetAction.NOTIFY.value, help_text=ACTION_HELP
    )

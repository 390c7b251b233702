"""Budgets, and what happened to them."""

from __future__ import annotations

from functools import partial

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from billing.choices import BudgetAction, BudgetEventKind, BudgetState
from billing.querysets import BudgetQuerySet
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

NAME_CHARS_MAX = 100
EVENTS_SHOWN = 20
# Bounds of the rate to which a budget throttles: below the least, one batch would have a client
# pause for minutes.
THROTTLE_MIN, THROTTLE_DEFAULT, THROTTLE_MAX = 2**16, 2**20, 2**40


class Budget(models.Model):
    """What an organization wants to spend at most in a calendar month, UTC, before taxes.

    A removed budget stays, with its events: invoices of months in which it was in force need it.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "bud"), editable=False
    )
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="budgets")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    # In minor units of the catalogue's currency.
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    # In percent of the amount, ascending.
    thresholds = ArrayField(models.PositiveSmallIntegerField())
    action = models.CharField(max_length=16, choices=BudgetAction.choices)
    # The last evaluation: its month, its time, and its results.
    month = models.DateField()
    evaluated_at = models.DateTimeField()
    spent_minor = models.BigIntegerField()
    state = models.CharField(max_length=16, choices=BudgetState.choices)
    # The part of it that is storage and partitions.
    kept_minor = models.BigIntegerField(default=0)
    # Only of `throttle`: bytes a second of produce and fetch together, for each cluster.
    throttle_bytes_per_s = models.BigIntegerField(null=True, blank=True)
    # The action that it takes at this moment, "" where it takes none, and since when. The column
    # keeps the name that it has.
    acting_as = models.CharField(max_length=16, choices=BudgetAction.choices, blank=True)
    acting_since = models.DateTimeField(null=True, blank=True, db_column="suspended_at")
    # The last month in which it covers all of the bill, and lets fetch go on, as was promised until
    # decision 0016; None for budgets that were set or changed since.
    covers_all_until = models.DateField(null=True, blank=True)
    # Counts changes of the settings: the ETag.
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="budgets_are_positive"),
            models.CheckConstraint(
                condition=~Q(action=BudgetAction.THROTTLE.value) | Q(throttle_bytes_per_s__gt=0),
                name="throttling_budgets_have_a_rate",
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="budgets_newest"),
        )

    def __str__(self) -> str:
        return self.name


class BudgetEvent(models.Model):
    """Something that happened to a budget, with its settings at that moment. Never changes."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "bev"), editable=False
    )
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    budget = models.ForeignKey(Budget, on_delete=models.PROTECT, related_name="events")
    kind = models.CharField(max_length=32, choices=BudgetEventKind.choices)
    month = models.DateField()
    # Only for `threshold_reached`: which one, in percent.
    threshold = models.PositiveSmallIntegerField(null=True, blank=True)
    spent_minor = models.BigIntegerField()
    # The part of it that is storage and partitions; None in events before decision 0016.
    kept_minor = models.BigIntegerField(null=True, blank=True)
    amount_minor = models.BigIntegerField()
    action = models.CharField(max_length=16, choices=BudgetAction.choices)
    throttle_bytes_per_s = models.BigIntegerField(null=True, blank=True)
    # As of the budget.
    covers_all_until = models.DateField(null=True, blank=True)
    # The budget's generation from this event on.
    generation = models.PositiveIntegerField()
    # Only for new settings: the traffic that stays billable under them (`rules.base_of`); with
    # `covers_all_until` all of the bill that does.
    base_minor = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["budget", "month", "amount_minor", "threshold"],
                condition=Q(kind=BudgetEventKind.THRESHOLD_REACHED.value),
                name="one_mail_a_threshold_and_month",
            ),
        )
        indexes = (
            models.Index(fields=["budget", "-created_at", "-id"], name="budget_events_newest"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.budget_id}"

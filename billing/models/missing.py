"""Months whose invoices are issued by themselves, and the organizations that lack theirs."""

from __future__ import annotations

from functools import partial

from django.db import models

from billing.choices import MissingKind
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class InvoiceMonth(models.Model):
    """A month that the service issues by itself, and how far that is."""

    month = models.DateField(primary_key=True)
    begun_at = models.DateTimeField(default=now)
    # When each organization had its invoice, or a row that says why not. Null: not yet.
    finished_at = models.DateTimeField(null=True, blank=True)
    # Why the last attempt ended for all organizations; empty: it did not.
    reason = models.TextField(blank=True)
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(default=now)

    class Meta:
        indexes = (
            models.Index(
                fields=["month"],
                condition=models.Q(finished_at__isnull=True),
                name="invoice_months_open",
            ),
        )

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


class MissingInvoice(models.Model):
    """An organization's invoice that could not be issued, until it is."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "miv"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="missing_invoices"
    )
    # The first day of the month that it is for.
    month = models.DateField()
    kind = models.CharField(max_length=24, choices=MissingKind.choices)
    # Why the last attempt failed, in one line.
    reason = models.TextField()
    attempts = models.PositiveIntegerField(default=1)
    # When it failed first, when last, and when it is tried again.
    created_at = models.DateTimeField(default=now)
    tried_at = models.DateTimeField(default=now)
    next_try_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization", "month"], name="one_missing_invoice_a_month"
            ),
        )
        indexes = (
            models.Index(fields=["-created_at", "-id"], name="missing_invoices_newest"),
            models.Index(fields=["next_try_at"], name="missing_invoices_due"),
        )

    def __str__(self) -> str:
        return f"{self.organization_id} {self.month:%Y-%m}"

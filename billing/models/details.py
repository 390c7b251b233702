"""Whom an organization's invoices are addressed to."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from console.base.accounts.models import Organization
from console.base.common.clock import now

LINE_CHARS_MAX = 200
LINES_MAX = 8


class BillingDetails(models.Model):
    """The customer's name and address for its invoices. An issued invoice keeps its own copy."""

    organization = models.OneToOneField(
        Organization, on_delete=models.PROTECT, primary_key=True, related_name="billing_details"
    )
    # Empty: the organization's own name.
    legal_name = models.CharField(max_length=LINE_CHARS_MAX, blank=True)
    address = ArrayField(models.CharField(max_length=LINE_CHARS_MAX), default=list, blank=True)
    # ISO 3166-1 alpha-2; empty: not known.
    country = models.CharField(max_length=2, blank=True)
    vat_id = models.CharField(max_length=32, blank=True)
    # Where invoices are mailed to. Empty: to the members who look after money.
    email = models.EmailField(blank=True)
    generation = models.PositiveIntegerField(default=1)
    updated_at = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "billing details"

    def __str__(self) -> str:
        return self.legal_name or str(self.pk)

"""Invoices, their lines, and the roll-ups that they were made from.

Issued invoices and their lines never change: triggers of `migrations/0005_guards.py` refuse it.
An invoice is void when there is a credit note that takes it back.
"""

from __future__ import annotations

from functools import partial

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from billing.choices import InvoiceKind, InvoiceState, LineKind, Rounding, TaxCategory
from billing.models.numbers import SERIES_CHARS_MAX, NumberBlock, NumberSeries
from billing.models.prices import PriceVersion
from billing.money import PRICE_DIGITS, PRICE_PLACES
from billing.querysets import InvoiceQuerySet
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

METER_CHARS_MAX = 32
REASON_CHARS_MAX = 500


class UsageBasis(models.Model):
    """The published roll-ups of a month from which invoices were made.

    A later, corrected roll-up of a day is another run, so the rows of these runs never change.
    """

    id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX, editable=False)
    month = models.DateField()
    # Ids of the runs, in the order of their days.
    runs = ArrayField(models.CharField(max_length=ID_CHARS_MAX))
    created_at = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "usage bases"

    def __str__(self) -> str:
        return f"{self.month} {self.pk}"


class Invoice(models.Model):
    """An invoice or a credit note."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "inv"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="invoices"
    )
    kind = models.CharField(max_length=16, choices=InvoiceKind.choices)
    # The first day of the month that it is for.
    month = models.DateField()
    # 1; greater for an invoice that replaces a void one.
    revision = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(
        max_length=16, choices=InvoiceState.choices, default=InvoiceState.DRAFT.value
    )
    series = models.ForeignKey(NumberSeries, on_delete=models.PROTECT, null=True, blank=True)
    sequence = models.PositiveBigIntegerField(null=True, blank=True)
    # The printed number: the series and the sequence.
    number = models.CharField(max_length=SERIES_CHARS_MAX + 20, null=True, blank=True, unique=True)
    block = models.ForeignKey(
        NumberBlock, on_delete=models.PROTECT, null=True, blank=True, related_name="invoices"
    )
    price_version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT)
    basis = models.ForeignKey(UsageBasis, on_delete=models.PROTECT)
    currency = models.CharField(max_length=3)
    # In minor units. The subtotal is the sum of the lines, the total that and the tax.
    subtotal_minor = models.BigIntegerField()
    tax_minor = models.BigIntegerField()
    total_minor = models.BigIntegerField()
    # `{category, percent, reason}`: one for the whole invoice.
    tax = models.JSONField()
    # Names and addresses at the time of issuing.
    seller = models.JSONField()
    customer = models.JSONField()
    # The most that a suspending budget allowed, before tax; null where no budget limited it.
    cap_minor = models.BigIntegerField(null=True, blank=True)
    # Why, by whom, and what was missing, where a month was closed before it was complete.
    closed_early = models.JSONField(null=True, blank=True)
    # `{kind, free: {meter: quantity}}`, where what is free was not the catalogue's allowance.
    allowance = models.JSONField(null=True, blank=True)
    # A program from before this column writes none, and rounds each line.
    rounding = models.CharField(
        max_length=8, choices=Rounding.choices, db_default=Rounding.LINE.value
    )
    # Only in a credit note: the invoice that it takes back, and why.
    credits = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="credit_note"
    )
    reason = models.CharField(max_length=REASON_CHARS_MAX, blank=True)
    created_at = models.DateTimeField(default=now)
    issued_at = models.DateTimeField(null=True, blank=True)

    objects = InvoiceQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization", "month", "kind", "revision"], name="one_invoice_a_month"
            ),
            models.UniqueConstraint(fields=["series", "sequence"], name="one_invoice_a_number"),
            models.CheckConstraint(
                condition=Q(state=InvoiceState.DRAFT.value)
                | Q(number__isnull=False, block__isnull=False, issued_at__isnull=False),
                name="issued_invoices_have_numbers",
            ),
            models.CheckConstraint(
                condition=Q(total_minor=models.F("subtotal_minor") + models.F("tax_minor")),
                name="totals_are_sums",
            ),
            models.CheckConstraint(
                condition=Q(kind=InvoiceKind.INVOICE.value, credits__isnull=True)
                | Q(kind=InvoiceKind.CREDIT_NOTE.value, credits__isnull=False),
                name="credit_notes_credit",
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="invoices_newest"),
            models.Index(fields=["month", "organization"], name="invoices_of_a_month"),
        )

    def __str__(self) -> str:
        return self.number or f"draft {self.pk}"


class InvoiceLine(models.Model):
    """One amount of an invoice."""

    # Derived from the invoice's id and the position, so that it is the same each time.
    id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX, editable=False)
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="lines")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=16, choices=LineKind.choices)
    meter = models.CharField(max_length=METER_CHARS_MAX, blank=True)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX, blank=True)
    # The cluster's name when it was issued.
    cluster = models.CharField(max_length=63, blank=True)
    description = models.CharField(max_length=200)
    # In the meter's base unit.
    quantity = models.DecimalField(max_digits=38, decimal_places=0, null=True, blank=True)
    free_quantity = models.DecimalField(max_digits=38, decimal_places=0, null=True, blank=True)
    unit_price = models.DecimalField(
        max_digits=PRICE_DIGITS, decimal_places=PRICE_PLACES, null=True, blank=True
    )
    # The unit that the price is for, and the number of base units in it.
    price_unit = models.CharField(max_length=16, blank=True)
    price_unit_size = models.BigIntegerField(null=True, blank=True)
    amount_minor = models.BigIntegerField()
    tax_category = models.CharField(max_length=2, choices=TaxCategory.choices)

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=["invoice", "position"], name="one_line_a_position"),
            # An invoice is for one month, so it is one line a period too.
            models.UniqueConstraint(
                fields=["invoice", "cluster_id", "meter", "unit_price"],
                condition=Q(kind=LineKind.USAGE.value),
                name="one_line_a_cluster_meter_and_price",
            ),
        )

    def __str__(self) -> str:
        return f"{self.description}: {self.amount_minor}"

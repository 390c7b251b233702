"""Numbers of invoices. How they stay gapless and unique: `billing/services/numbers.py`."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from billing.choices import InvoiceKind
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

SERIES_CHARS_MAX = 24
KEY_CHARS_MAX = 255


class NumberSeries(models.Model):
    """A counter. Whoever issues locks its row until the transaction ends."""

    series = models.CharField(primary_key=True, max_length=SERIES_CHARS_MAX)
    last = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "number series"

    def __str__(self) -> str:
        return self.series


class NumberBlock(models.Model):
    """Numbers `first` to `last` of a series, as one transaction used them."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "nbl"), editable=False
    )
    series = models.ForeignKey(NumberSeries, on_delete=models.PROTECT, related_name="blocks")
    first = models.PositiveBigIntegerField()
    last = models.PositiveBigIntegerField()
    # Of the reservation in the object store.
    key = models.CharField(max_length=KEY_CHARS_MAX, unique=True)
    created_at = models.DateTimeField(default=now)
    # When the object store took on record that these numbers are issued. Nobody is shown an
    # invoice before.
    confirmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["series", "first"], name="one_block_a_first_number"),
            models.CheckConstraint(condition=Q(last__gte=models.F("first")), name="block_of_some"),
        )

    def __str__(self) -> str:
        return f"{self.series_id} {self.first}–{self.last}"


class LostNumber(models.Model):
    """A number that was issued and that this database, restored from a backup, knew nothing of.

    It is given to the same invoice again, and to no other.
    """

    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    block = models.ForeignKey(NumberBlock, on_delete=models.PROTECT, related_name="lost")
    sequence = models.PositiveBigIntegerField()
    # What it was given to.
    kind = models.CharField(max_length=16, choices=InvoiceKind.choices)
    month = models.DateField()
    revision = models.PositiveSmallIntegerField()
    invoice_id = models.CharField(max_length=ID_CHARS_MAX)
    sha256 = models.CharField(max_length=64)
    issued_at = models.DateTimeField()
    found_at = models.DateTimeField(default=now)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["block", "sequence"], name="one_loss_a_number"),
        )
        indexes = (models.Index(fields=["organization_id", "month"], name="lost_numbers_of"),)

    def __str__(self) -> str:
        return f"{self.block_id} {self.sequence}"

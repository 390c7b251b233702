"""Numbers of invoices. `billing/services/numbers.py` says how they stay gapless and unique."""

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
    """The counter of a series. Whoever issues holds a lock of its name."""

    series = models.CharField(primary_key=True, max_length=SERIES_CHARS_MAX)
    last = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "number series"

    def __str__(self) -> str:
        return self.series


class NumberBlock(models.Model):
    """Numbers `first` to `last` of a series, which one transaction used."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "nbl"), editable=False
    )
    series = models.ForeignKey(NumberSeries, on_delete=models.PROTECT, related_name="blocks")
    first = models.PositiveBigIntegerField()
    last = models.PositiveBigIntegerField()
    # The key of the reservation in the object store.
    key = models.CharField(max_length=KEY_CHARS_MAX, unique=True)
    created_at = models.DateTimeField(default=now)
    # When the object store recorded that these numbers are issued. Their invoices are shown to
    # nobody before that.
    confirmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["series", "first"], name="one_block_a_first_number"),
            models.CheckConstraint(condition=Q(last__gte=models.F("first")), name="block_of_some"),
        )

    def __str__(self) -> str:
        return f"{self.series_id} {self.first}–{self.last}"


class LostNumber(models.Model):
    """A number that was issued, and that this database lost when it was restored from a backup.

    The number is given to the same invoice again, and to no other one.
    """

    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    block = models.ForeignKey(NumberBlock, on_delete=models.PROTECT, related_name="lost")
    sequence = models.PositiveBigIntegerField()
    # The invoice that had the number.
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

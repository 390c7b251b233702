"""Rolled-up usage, from which invoices are made."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from console.base.common.ids import ID_CHARS_MAX
from metering.choices import Granularity, UsageMeter
from metering.models.rollup import RollupRun
from metering.querysets import UsageRowQuerySet

TOPIC_ID_CHARS_MAX = 32
METER_CHARS_MAX = 32


class UsageRow(models.Model):
    """What one principal used of one topic in one hour or day, by one run.

    Never changed and never removed; the database refuses both. A corrected day is a new run.
    """

    # A hash of the run and the row's key, so that a row has the same id wherever it is derived.
    id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX, editable=False)
    run = models.ForeignKey(RollupRun, on_delete=models.PROTECT, related_name="rows")
    granularity = models.CharField(max_length=8, choices=Granularity.choices)
    # Not a foreign key: usage stays, whatever happens to its organization.
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    # 32 hexadecimal digits; empty for what belongs to no topic.
    topic_id = models.CharField(max_length=TOPIC_ID_CHARS_MAX, blank=True)
    # Empty for what belongs to no principal.
    principal = models.TextField(blank=True)
    meter = models.CharField(max_length=METER_CHARS_MAX, choices=UsageMeter.choices)
    window_start = models.DateTimeField()
    window_end = models.DateTimeField()
    quantity = models.DecimalField(max_digits=38, decimal_places=0)
    billed = models.BooleanField()

    objects = UsageRowQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(quantity__gte=0), name="usage_rows_are_not_negative"
            ),
        )
        indexes = (
            # What the API reads: one organization, a span of time.
            models.Index(
                fields=["organization_id", "granularity", "window_start"],
                include=["run", "cluster_id", "topic_id", "meter", "billed", "quantity"],
                name="usage_rows_by_time",
            ),
            # What invoices are made from: every organization's days of a month.
            models.Index(
                fields=["organization_id", "cluster_id", "meter", "window_start"],
                include=["run", "quantity"],
                condition=Q(granularity=Granularity.DAY.value, billed=True),
                name="usage_rows_billed",
            ),
        )

    def __str__(self) -> str:
        return f"{self.meter} {self.quantity}"


class StagedRow(models.Model):
    """A roll-up's row as it was copied in, before the checks.

    A row is deleted in the transaction that wrote it. The table has no row security, because
    PostgreSQL does not COPY into a table that has it.
    """

    id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX)
    run_id = models.CharField(max_length=ID_CHARS_MAX)
    granularity = models.CharField(max_length=8)
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    topic_id = models.CharField(max_length=TOPIC_ID_CHARS_MAX)
    principal = models.TextField()
    meter = models.CharField(max_length=METER_CHARS_MAX)
    window_start_ms = models.BigIntegerField()
    window_end_ms = models.BigIntegerField()
    quantity = models.DecimalField(max_digits=38, decimal_places=0)
    billed = models.BooleanField()

    def __str__(self) -> str:
        return f"{self.meter} {self.quantity}"

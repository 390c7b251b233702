"""Running totals: what billed usage sums to, kept beside the rows that it is the sum of.

`metering/services/running.py` is the only writer and says what counts.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX
from metering.choices import PartKind, UsageMeter
from metering.models.rollup import CELL_CHARS_MAX
from metering.models.rows import METER_CHARS_MAX
from metering.ranks import rank_of_row


def _quantity() -> models.DecimalField[Any, Any]:
    return models.DecimalField(max_digits=38, decimal_places=0, default=0)


class RunningMonth(models.Model):
    """What one cluster used of one meter in a month so far."""

    pk = models.CompositePrimaryKey("organization_id", "cluster_id", "month", "meter")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    # The month's first day.
    month = models.DateField()
    meter = models.CharField(max_length=METER_CHARS_MAX, choices=UsageMeter.choices)
    quantity = _quantity()

    class Meta:
        indexes = (models.Index(fields=["month", "organization_id"], name="running_months"),)

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.month:%Y-%m} {self.meter}"


class RunningDay(models.Model):
    """What one cluster used of one meter on a day: by its published run, or by its minutes."""

    pk = models.CompositePrimaryKey("organization_id", "cluster_id", "day", "meter")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    day = models.DateField()
    meter = models.CharField(max_length=METER_CHARS_MAX, choices=UsageMeter.choices)
    quantity = _quantity()

    class Meta:
        indexes = (
            models.Index(fields=["organization_id", "day"], name="running_days_of_one"),
            models.Index(fields=["day"], name="running_days"),
        )

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.day} {self.meter}"


class RunningHour(models.Model):
    """What the minutes of an hour sum to, of meters that count time, and which minutes there are.

    From it follows how much a cluster stores at present. Kept for eight days.
    """

    pk = models.CompositePrimaryKey("organization_id", "cluster_id", "hour", "meter")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    # The hour's beginning.
    hour = models.DateTimeField()
    meter = models.CharField(max_length=METER_CHARS_MAX, choices=UsageMeter.choices)
    quantity = _quantity()
    first_minute = models.DateTimeField()
    last_minute = models.DateTimeField()

    class Meta:
        indexes = (
            models.Index(fields=["organization_id", "hour"], name="running_hours_of_one"),
            models.Index(fields=["hour"], name="running_hours"),
        )

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.hour} {self.meter}"


class UsagePart(models.Model):
    """What a topic or a principal of a cluster used of each meter that is billed.

    One row for all meters, so that a reader ranks many topics by what they cost in one pass.
    """

    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    kind = models.CharField(max_length=16, choices=PartKind.choices)
    # The topic's id or the principal; empty for what belongs to none.
    name = models.TextField(blank=True)
    ingress_bytes = _quantity()
    egress_bytes = _quantity()
    storage_byte_minutes = _quantity()
    partition_minutes = _quantity()

    class Meta:
        abstract = True


class MonthPart(UsagePart):
    """A part of a month so far."""

    pk = models.CompositePrimaryKey("organization_id", "cluster_id", "month", "kind", "name")
    # The month's first day.
    month = models.DateField()
    # Most updates leave it as it is, and touch no index then.
    rank = models.GeneratedField(
        expression=rank_of_row(), output_field=models.SmallIntegerField(), db_persist=True
    )

    class Meta:
        indexes = (
            models.Index(
                fields=["organization_id", "cluster_id", "month", "kind", "-rank"],
                name="parts_by_rank",
            ),
            models.Index(
                fields=["organization_id", "month", "kind", "-rank"], name="parts_of_all_by_rank"
            ),
        )

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.month:%Y-%m} {self.name}"


class ProvisionalPart(UsagePart):
    """A part of a day that counts from its minutes. Removed when the day is published."""

    pk = models.CompositePrimaryKey("organization_id", "cluster_id", "day", "kind", "name")
    day = models.DateField()

    class Meta:
        indexes = (models.Index(fields=["day"], name="provisional_parts"),)

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.day} {self.name}"


class TotalsCheck(models.Model):
    """A comparison of running totals with the rows that they must sum to."""

    cell = models.CharField(max_length=CELL_CHARS_MAX)
    checked_at = models.DateTimeField(default=now)
    # How many totals differ, and the first of them in words.
    differing = models.PositiveBigIntegerField()
    differences = models.JSONField(default=list)

    class Meta:
        indexes = (models.Index(fields=["cell", "-checked_at"], name="totals_checks_newest"),)

    def __str__(self) -> str:
        return f"{self.checked_at} {self.differing}"

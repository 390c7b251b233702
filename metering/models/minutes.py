"""Fresh usage, which the nightly roll-up replaces, and which hours of it are complete."""

from __future__ import annotations

from django.db import models

from console.base.common.ids import ID_CHARS_MAX
from metering.choices import UsageMeter

TOPIC_ID_CHARS_MAX = 32
TOPIC_NAME_CHARS_MAX = 249


class ProvisionalMinute(models.Model):
    """What one principal used of one topic in one minute, as far as it is known yet.

    Kept for eight days. Quantities only grow: each block and each window is added once.
    """

    pk = models.CompositePrimaryKey(
        "cluster_id", "minute", "meter", "topic_id", "principal", "billed"
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    # Empty for what belongs to no topic.
    topic_id = models.CharField(max_length=TOPIC_ID_CHARS_MAX, blank=True)
    # Empty for what belongs to no principal.
    principal = models.TextField(blank=True)
    meter = models.CharField(max_length=32, choices=UsageMeter.choices)
    # The minute's beginning.
    minute = models.DateTimeField()
    quantity = models.DecimalField(max_digits=38, decimal_places=0)
    billed = models.BooleanField()

    class Meta:
        indexes = (
            models.Index(fields=["organization_id", "minute"], name="minutes_by_time"),
            models.Index(fields=["minute"], name="minutes_to_remove"),
        )

    def __str__(self) -> str:
        return f"{self.meter} {self.quantity}"


class JudgedHour(models.Model):
    """Whether all that a cluster used in an hour is in the files that were taken in.

    The table keeps the name that it was created with.
    """

    pk = models.CompositePrimaryKey("cluster_id", "hour")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    # The hour's beginning.
    hour = models.DateTimeField()
    complete = models.BooleanField()
    # What is missing, for people; empty if nothing is.
    reason = models.TextField(blank=True)

    class Meta:
        db_table = "metering_hourstanding"
        indexes = (
            models.Index(fields=["organization_id", "hour"], name="hours_by_time"),
            models.Index(
                fields=["hour"], condition=models.Q(complete=False), name="hours_incomplete"
            ),
        )

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.hour}"


class TopicName(models.Model):
    """The name of a topic; deleted topics keep theirs."""

    pk = models.CompositePrimaryKey("cluster_id", "topic_id")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    topic_id = models.CharField(max_length=TOPIC_ID_CHARS_MAX)
    name = models.CharField(max_length=TOPIC_NAME_CHARS_MAX)

    def __str__(self) -> str:
        return self.name

"""Samples of clusters as the keeper took them: the newest of each, and the series over time."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX
from provisioning.choices import SampleFileState
from provisioning.models.cluster import Cluster

KEY_CHARS_MAX = 128


class ClusterSample(models.Model):
    """The newest sample of a cluster. Times are milliseconds since 1970."""

    cluster = models.OneToOneField(
        Cluster, on_delete=models.CASCADE, primary_key=True, related_name="sample"
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    # The term of the keeper that took it: a sample of an earlier one never replaces it.
    term = models.BigIntegerField()
    taken_at_ms = models.BigIntegerField()
    # JSON as the keeper wrote it, where PostgreSQL's own type would refuse some names.
    content = models.TextField()
    # The minute that has a row of `SampleMinute` last, and the counters of topics then, as JSON,
    # from which the next row's rates are counted.
    minute_ms = models.BigIntegerField(default=0)
    counted_at_ms = models.BigIntegerField(default=0)
    counted = models.TextField(default="{}")

    def __str__(self) -> str:
        return self.cluster_id


class SampleMinute(models.Model):
    """The series of a cluster in a minute, as `sample_series.py` describes them. Kept for a day.

    The table is partitioned by the day of `at`.
    """

    pk = models.CompositePrimaryKey("cluster_id", "at")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    # The minute's beginning.
    at = models.DateTimeField()
    series = models.JSONField()

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.at}"


class SampleHour(models.Model):
    """The same of an hour. Kept for 30 days, partitioned by the day of `at`."""

    pk = models.CompositePrimaryKey("cluster_id", "at")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    # The hour's beginning.
    at = models.DateTimeField()
    series = models.JSONField()

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.at}"


class SampleFile(models.Model):
    """A file of samples that was taken in, of many organizations; known as long as it is kept."""

    key = models.CharField(primary_key=True, max_length=KEY_CHARS_MAX)
    emitted_at_ms = models.BigIntegerField(db_index=True)
    term = models.BigIntegerField()
    state = models.CharField(max_length=16, choices=SampleFileState.choices)
    # Why it is damaged; empty where it is not.
    error = models.TextField(blank=True)
    samples = models.PositiveIntegerField(default=0)
    # Lines that could not be read, or that PostgreSQL refused.
    damaged = models.PositiveIntegerField(default=0)
    ingested_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.key

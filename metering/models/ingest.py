"""Known usage files, and how much of lanes and clusters is in the provisional minutes."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX
from metering.choices import FileState
from metering.fields import Int8MultirangeField

KEY_CHARS_MAX = 512


class UsageFile(models.Model):
    """A usage file that ingest found by its manifest. Times are milliseconds since 1970."""

    # Its key in the usage store.
    key = models.CharField(primary_key=True, max_length=KEY_CHARS_MAX)
    cell = models.CharField(max_length=32)
    # The day of its emission, which its key names.
    day = models.DateField()
    size_bytes = models.BigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    rows = models.BigIntegerField(default=0)
    # The windows of its rows lie in [start, end); null without a row.
    window_start_ms = models.BigIntegerField(null=True, blank=True)
    window_end_ms = models.BigIntegerField(null=True, blank=True)
    emitted_at_ms = models.BigIntegerField(default=0)
    agent = models.CharField(max_length=255, blank=True)
    state = models.CharField(max_length=16, choices=FileState.choices)
    # Why it is damaged; empty if it is not.
    error = models.TextField(blank=True)
    found_at = models.DateTimeField(default=now)
    # When ingest last tried to take it in.
    tried_at = models.DateTimeField(default=now)
    # How many files of agents it joins (`spark_usage.jobs.compact_files`); 0 for an agent's.
    joined = models.IntegerField(default=0, db_default=0)
    # The file that has all its rows, and counts in its place.
    replaced_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="replaces"
    )
    # When it was removed from the store, because it is replaced.
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (
            models.Index(fields=["cell", "day"], name="usage_files_by_day"),
            models.Index(fields=["cell", "window_end_ms"], name="usage_files_by_window"),
            models.Index(
                fields=["cell", "emitted_at_ms"],
                condition=~models.Q(state=FileState.INGESTED.value),
                name="usage_files_left",
            ),
            models.Index(
                fields=["cell", "day"],
                condition=models.Q(
                    state=FileState.INGESTED.value, joined=0, replaced_by__isnull=True
                ),
                name="usage_files_not_joined",
            ),
        )

    def __str__(self) -> str:
        return self.key


class FileCoverage(models.Model):
    """What a usage file covers of one cluster: lanes, blocks and time."""

    pk = models.CompositePrimaryKey("file", "cluster_id")
    file = models.ForeignKey(UsageFile, on_delete=models.CASCADE, related_name="clusters")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    as_of_ms = models.BigIntegerField()
    # All that it covers lies in [since, until].
    since_ms = models.BigIntegerField()
    until_ms = models.BigIntegerField()
    # The manifest's entry, as `completeness.entries_of` reads it; a list where there are several.
    entry = models.JSONField()

    class Meta:
        indexes = (
            models.Index(fields=["cluster_id", "until_ms"], name="coverage_by_time"),
            models.Index(fields=["cluster_id", "as_of_ms"], name="coverage_by_knowledge"),
        )

    def __str__(self) -> str:
        return f"{self.cluster_id} in {self.file_id}"


class LaneCoverage(models.Model):
    """Which blocks of a lane are in the provisional minutes.

    Rows are removed with the minutes of their time: old blocks are in no minute any more.
    """

    pk = models.CompositePrimaryKey("cluster_id", "incarnation")
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    incarnation = models.BigIntegerField()
    # The blocks' sequence numbers.
    sequences = Int8MultirangeField()
    changed_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"{self.cluster_id}/{self.incarnation}"


class ClusterCoverage(models.Model):
    """Which time of a cluster is in the provisional minutes, and how far its manifests go."""

    cluster_id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX)
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    # The times of storage, partitions and brokers, in milliseconds since 1970.
    storage_ms = Int8MultirangeField()
    # The latest `as_of_ms` of the cluster's entries in manifests.
    as_of_ms = models.BigIntegerField(default=0)
    # When the cluster was gone from its cell; nothing follows. Null while it exists.
    closed_at_ms = models.BigIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return self.cluster_id


class IngestState(models.Model):
    """How far a cell's usage files are taken in."""

    cell = models.CharField(primary_key=True, max_length=32)
    # All files emitted on days before this one are known, except late ones.
    settled_before = models.DateField(null=True, blank=True)
    # When the last pass ended.
    ran_at = models.DateTimeField(null=True, blank=True)
    # When the newest file that was taken in was written.
    newest_emitted_at_ms = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return self.cell

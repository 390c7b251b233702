"""Values that columns of metering may have."""

from __future__ import annotations

from django.db import models


class UsageMeter(models.TextChoices):
    """What is counted."""

    # Bytes of record batches as they are stored.
    INGRESS_BYTES = "ingress_bytes", "Ingress"
    # Bytes of record batches as they were handed to sockets.
    EGRESS_BYTES = "egress_bytes", "Egress"
    # Bytes that retention keeps, times minutes.
    STORAGE_BYTE_MINUTES = "storage_byte_minutes", "Storage"
    PARTITION_MINUTES = "partition_minutes", "Partitions"
    # Shown, never billed.
    BROKER_SECONDS = "broker_seconds", "Brokers"


UNITS = {
    UsageMeter.INGRESS_BYTES.value: "byte",
    UsageMeter.EGRESS_BYTES.value: "byte",
    UsageMeter.STORAGE_BYTE_MINUTES.value: "byte_minute",
    UsageMeter.PARTITION_MINUTES.value: "partition_minute",
    UsageMeter.BROKER_SECONDS.value: "second",
}

# Meters of what is kept: it counts in every minute, whether anybody uses it or not.
ACCRUING_METERS = (
    UsageMeter.STORAGE_BYTE_MINUTES.value,
    UsageMeter.PARTITION_MINUTES.value,
)
# The meters of which topics and principals have parts: columns of `UsagePart`.
PART_METERS = (
    UsageMeter.INGRESS_BYTES.value,
    UsageMeter.EGRESS_BYTES.value,
    UsageMeter.STORAGE_BYTE_MINUTES.value,
    UsageMeter.PARTITION_MINUTES.value,
)


class PartKind(models.TextChoices):
    """Whose part of a cluster's usage it is."""

    TOPIC = "topic", "Topic"
    PRINCIPAL = "principal", "Principal"


class Granularity(models.TextChoices):
    """How long the window of a rolled-up row is."""

    HOUR = "hour", "Hour"
    DAY = "day", "Day"


class HoursIn(models.TextChoices):
    """Where the hours of a roll-up are."""

    # Rows of PostgreSQL, beside those of days: runs from before hours stayed in files.
    TABLE = "table", "Table"
    # The Parquet files of the run's folder.
    FILES = "files", "Files"


class RunState(models.TextChoices):
    """How far a roll-up or a comparison is. All but the first are final."""

    RUNNING = "running", "Running"
    PUBLISHED = "published", "Published"
    # It has the same rows as the published run, so nothing was published.
    UNCHANGED = "unchanged", "Unchanged"
    # A comparison that came to a result.
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    INTERRUPTED = "interrupted", "Interrupted"


class FileState(models.TextChoices):
    """What became of a usage file."""

    INGESTED = "ingested", "Ingested"
    # It cannot be read, or differs from its manifest. It does not count, and is tried again.
    DAMAGED = "damaged", "Damaged"


class QualityKind(models.TextChoices):
    """The kind of a result about the quality of a roll-up's data."""

    CHECK = "check", "Check"
    CONFLICT = "conflict", "Conflict"
    DAMAGED_INPUT = "damaged_input", "Damaged input"
    INCOMPLETE_HOUR = "incomplete_hour", "Incomplete hour"
    RECONCILIATION = "reconciliation", "Reconciliation"


class Agreement(models.TextChoices):
    """How metered bytes compare with those that the log holds."""

    # Equal to the byte.
    EQUAL = "equal", "Equal"
    DIFFERENT = "different", "Different"
    # What could be compared is equal; for the rest nobody knows what the log held.
    PARTLY_KNOWN = "partly_known", "Partly known"

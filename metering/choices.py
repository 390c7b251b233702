"""Values that columns of metering may have."""

from __future__ import annotations

from django.db import models


class Meter(models.TextChoices):
    """What is counted."""

    # Record batches as they are stored.
    INGRESS_BYTES = "ingress_bytes", "Ingress"
    # Record batches as they were handed to sockets.
    EGRESS_BYTES = "egress_bytes", "Egress"
    # Bytes that retention keeps, times minutes.
    STORAGE_BYTE_MINUTES = "storage_byte_minutes", "Storage"
    PARTITION_MINUTES = "partition_minutes", "Partitions"
    # Shown, never billed.
    BROKER_SECONDS = "broker_seconds", "Brokers"


UNITS = {
    Meter.INGRESS_BYTES.value: "byte",
    Meter.EGRESS_BYTES.value: "byte",
    Meter.STORAGE_BYTE_MINUTES.value: "byte_minute",
    Meter.PARTITION_MINUTES.value: "partition_minute",
    Meter.BROKER_SECONDS.value: "second",
}


class Granularity(models.TextChoices):
    """How long the window of a rolled-up row is."""

    HOUR = "hour", "Hour"
    DAY = "day", "Day"


class RunState(models.TextChoices):
    """How far a roll-up or a comparison is. All but the first are final."""

    RUNNING = "running", "Running"
    PUBLISHED = "published", "Published"
    # Its result is that of the published run.
    UNCHANGED = "unchanged", "Unchanged"
    # A comparison that came to a result.
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    INTERRUPTED = "interrupted", "Interrupted"


class FileState(models.TextChoices):
    """What became of a usage file."""

    INGESTED = "ingested", "Ingested"
    # Not what its manifest says, or not readable. Left out, and looked at again.
    DAMAGED = "damaged", "Damaged"


class QualityKind(models.TextChoices):
    """What a result about the quality of a roll-up's data is about."""

    CHECK = "check", "Check"
    CONFLICT = "conflict", "Conflict"
    DAMAGED_INPUT = "damaged_input", "Damaged input"
    INCOMPLETE_HOUR = "incomplete_hour", "Incomplete hour"
    RECONCILIATION = "reconciliation", "Reconciliation"


class Agreement(models.TextChoices):
    """How metered bytes compare with those that the log holds."""

    # To the byte.
    EQUAL = "equal", "Equal"
    DIFFERENT = "different", "Different"
    # What was compared is equal; of the rest nobody can say what the log held.
    PARTLY_KNOWN = "partly_known", "Partly known"

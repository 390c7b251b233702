"""Values that columns of billing may have."""

from __future__ import annotations

from django.db import models


class Meter(models.TextChoices):
    """What is counted and has a price."""

    INGRESS = "ingress_bytes", "Data in"
    EGRESS = "egress_bytes", "Data out"
    STORAGE = "storage_byte_minutes", "Storage"
    PARTITIONS = "partition_minutes", "Partitions"


class PriceUnit(models.TextChoices):
    """What a price, or a free allowance, is of."""

    GIB = "GiB", "GiB"
    GIB_MONTH = "GiB-month", "GiB-month"
    PARTITION_HOUR = "partition-hour", "Partition-hour"
    PARTITION_MONTH = "partition-month", "Partition-month"


class BudgetAction(models.TextChoices):
    """What happens when a budget is used up, beside the mail."""

    NOTIFY = "notify", "Notify"
    # Clusters of the organisation refuse produce until it is lifted.
    SUSPEND = "suspend", "Suspend"


class BudgetState(models.TextChoices):
    """How a budget stands in the current month."""

    OK = "ok", "OK"
    # The lowest threshold is reached.
    WARNED = "warned", "Warned"
    EXCEEDED = "exceeded", "Exceeded"


class BudgetEventKind(models.TextChoices):
    """What happened to a budget."""

    CREATED = "created", "Created"
    CHANGED = "changed", "Changed"
    REMOVED = "removed", "Removed"
    THRESHOLD_REACHED = "threshold_reached", "Threshold reached"
    SUSPENDED = "suspended", "Suspended"
    RESUMED = "resumed", "Resumed"


# Kinds by which a budget's settings came into force.
BUDGET_SETTINGS = (
    BudgetEventKind.CREATED.value,
    BudgetEventKind.CHANGED.value,
    BudgetEventKind.REMOVED.value,
)

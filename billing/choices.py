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

"""The values that columns of alerts may have, and the units of figures."""

from __future__ import annotations

from django.db import models


class AlertKind(models.TextChoices):
    """Which figure of a cluster an alert watches."""

    GROUP_LAG = "group_lag", "Lag of a consumer group, in records"
    GROUP_LAG_SECONDS = "group_lag_seconds", "Lag of a consumer group, in seconds"
    STORAGE_BYTES = "storage_bytes", "Stored bytes"
    STORAGE_GROWTH_BYTES = "storage_growth_bytes", "Growth of stored bytes in 24 hours"
    CONNECTIONS = "connections", "Connections of clients"


class AlertState(models.TextChoices):
    """Whether the figure is beyond the threshold: not at all, not long enough for a mail, or so."""

    OK = "ok", "OK"
    PENDING = "pending", "Pending"
    FIRING = "firing", "Firing"


OF_GROUPS = frozenset({AlertKind.GROUP_LAG.value, AlertKind.GROUP_LAG_SECONDS.value})
OF_STORAGE = frozenset({AlertKind.STORAGE_BYTES.value, AlertKind.STORAGE_GROWTH_BYTES.value})
# What the subject of a figure is: its kind, as texts name it.
SUBJECTS = {
    **dict.fromkeys(OF_GROUPS, "Consumer group"),
    **dict.fromkeys(OF_STORAGE, "Topic with most of it"),
}
UNITS = {
    AlertKind.GROUP_LAG.value: "records",
    AlertKind.GROUP_LAG_SECONDS.value: "seconds",
    AlertKind.STORAGE_BYTES.value: "bytes",
    AlertKind.STORAGE_GROWTH_BYTES.value: "bytes",
    AlertKind.CONNECTIONS.value: "connections",
}

"""The table of restarts, from which a crash loop is recognised."""

from __future__ import annotations

from django.db import models

from console.base.common.ids import ID_CHARS_MAX


class RestartCount(models.Model):
    """How often one cluster's brokers had restarted when the sweep last saw a new restart."""

    cluster_id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX)
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    count = models.PositiveIntegerField()
    streak = models.PositiveIntegerField()
    last_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.cluster_id}: {self.count}"

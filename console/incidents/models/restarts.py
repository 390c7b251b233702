"""What the sweep remembers of restarts."""

from __future__ import annotations

from django.db import models

from console.base.common.ids import ID_CHARS_MAX


class RestartCount(models.Model):
    """Restarts of one cluster's brokers, as of the last look that found another one."""

    cluster_id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX)
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    count = models.PositiveIntegerField()
    streak = models.PositiveIntegerField()
    last_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.cluster_id}: {self.count}"

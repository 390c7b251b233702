"""Granted limits, which apply in place of the defaults."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX
from console.base.limits.models.request import LIMIT_CHARS_MAX, LimitRequest


class LimitGrant(models.Model):
    """The value of a limit for an organization, or for one of its clusters."""

    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    # Empty for a limit of the organization, and for one that applies to all of its clusters.
    cluster_id = models.CharField(max_length=ID_CHARS_MAX, blank=True)
    limit = models.CharField(max_length=LIMIT_CHARS_MAX)
    value = models.PositiveIntegerField()
    # The request that it was granted for.
    request = models.ForeignKey(LimitRequest, on_delete=models.PROTECT, related_name="grants")
    granted_at = models.DateTimeField(default=now)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization_id", "limit", "cluster_id"], name="one_grant_a_limit"
            ),
        )

    def __str__(self) -> str:
        return f"{self.limit}: {self.value}"

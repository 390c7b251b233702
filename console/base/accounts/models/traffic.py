"""Limits of organizations' traffic, by what sets them."""

from __future__ import annotations

from django.db import models

from console.base.accounts.choices import TrafficLimitKind, TrafficLimitSource
from console.base.accounts.models.organization import REASON_CHARS_MAX, Organization
from console.base.accounts.querysets import TrafficLimitQuerySet
from console.base.accounts.traffic import LimitInForce
from console.base.common.clock import now


class TrafficLimit(models.Model):
    """A limit that one source sets. Which of them holds is on the organization."""

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="traffic_limits"
    )
    source = models.CharField(max_length=16, choices=TrafficLimitSource.choices)
    kind = models.CharField(max_length=16, choices=TrafficLimitKind.choices)
    # Clients and people are shown it.
    reason = models.CharField(max_length=REASON_CHARS_MAX)
    # Only of `throttle`.
    bytes_per_s = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)

    objects = TrafficLimitQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization", "source"], name="one_traffic_limit_a_source"
            ),
            models.CheckConstraint(
                condition=models.Q(kind=TrafficLimitKind.THROTTLE.value, bytes_per_s__gt=0)
                | (
                    ~models.Q(kind=TrafficLimitKind.THROTTLE.value)
                    & models.Q(bytes_per_s__isnull=True)
                ),
                name="only_throttles_have_a_rate",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} because of {self.source}"

    @property
    def in_force(self) -> LimitInForce:
        """The limit as a value."""
        return LimitInForce(self.kind, self.reason, self.bytes_per_s)

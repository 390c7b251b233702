"""Requests to raise a limit."""

from __future__ import annotations

from functools import partial

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from console.base.limits.choices import LimitRequestState

LIMIT_CHARS_MAX = 64
TEXT_CHARS_MAX = 2_000
# The largest value of a `PositiveIntegerField`'s column.
VALUE_MAX = 2**31 - 1


class LimitRequest(models.Model):
    """An organization's request for more than a limit. Staff answer it once."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "lrq"), editable=False
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    # Empty for a limit of the organization, and for one that shall apply to all of its clusters.
    cluster_id = models.CharField(max_length=ID_CHARS_MAX, blank=True)
    limit = models.CharField(max_length=LIMIT_CHARS_MAX)
    wanted = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    reason = models.CharField(max_length=TEXT_CHARS_MAX)
    state = models.CharField(
        max_length=16, choices=LimitRequestState.choices, default=LimitRequestState.OPEN.value
    )
    # The text with which staff answer it.
    answer = models.CharField(max_length=TEXT_CHARS_MAX, blank=True)
    granted = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization_id", "cluster_id", "limit"],
                condition=Q(state=LimitRequestState.OPEN.value),
                name="one_open_request_a_limit",
            ),
        )
        indexes = (
            models.Index(
                fields=["organization_id", "-created_at", "-id"], name="limit_requests_newest"
            ),
            models.Index(fields=["state", "-created_at", "-id"], name="limit_requests_by_state"),
        )

    def __str__(self) -> str:
        return f"{self.limit}: {self.wanted}"

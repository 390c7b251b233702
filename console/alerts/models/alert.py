"""The table of alerts."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from console.alerts.choices import AlertKind, AlertState
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from provisioning.models import Cluster

NAME_CHARS_MAX = 100
# Kafka allows 32,767 bytes; a longer name than this is cut (`sweeping._storable_subject`).
GROUP_CHARS_MAX = 255
SUBJECT_CHARS_MAX = GROUP_CHARS_MAX
EMAIL_CHARS_MAX = 254


class Alert(models.Model):
    """Watches a figure of a cluster: mails are sent when it stays beyond a threshold."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "alr"), editable=False
    )
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="alerts")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="alerts")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    kind = models.CharField(max_length=32, choices=AlertKind.choices)
    # The consumer group, for the kinds that measure a lag; empty: the group that is furthest
    # behind.
    group = models.CharField(max_length=GROUP_CHARS_MAX, blank=True)
    threshold = models.BigIntegerField()
    for_s = models.PositiveIntegerField()
    # Who gets the mails; empty: those who manage the organization.
    emails = ArrayField(models.CharField(max_length=EMAIL_CHARS_MAX), default=list, blank=True)
    # Counts changes by people; it is the ETag of the REST resource.
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    state = models.CharField(max_length=16, choices=AlertState.choices, default=AlertState.OK.value)
    changed_at = models.DateTimeField(default=now)
    # When it last began to fire; a change by people does not reset it.
    fired_at = models.DateTimeField(null=True, blank=True)
    # When it last went beyond the threshold and became pending.
    beyond_since = models.DateTimeField(null=True, blank=True)
    # Since when every figure of a firing alert is back below the threshold.
    back_since = models.DateTimeField(null=True, blank=True)
    # The group or topic whose figure made it fire last.
    fired_subject = models.CharField(max_length=SUBJECT_CHARS_MAX, blank=True)
    # When the figure was last read, the figure (None: it was not known), and the group or topic
    # that has it, or most of it.
    evaluated_at = models.DateTimeField(null=True, blank=True)
    value = models.BigIntegerField(null=True, blank=True)
    subject = models.CharField(max_length=SUBJECT_CHARS_MAX, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(threshold__gte=0), name="alerts_are_not_negative"),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="alerts_newest"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def since(self) -> datetime:
        """When the figure went beyond the threshold, if it is; otherwise since when it is OK."""
        beyond = self.state != AlertState.OK.value
        return self.beyond_since if beyond and self.beyond_since else self.changed_at

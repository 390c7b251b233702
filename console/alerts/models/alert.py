"""Alerts."""

from __future__ import annotations

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
# Kafka's int16 of a string's length bounds it; nobody's are as long.
GROUP_CHARS_MAX = 255
EMAIL_CHARS_MAX = 254


class Alert(models.Model):
    """Somebody is told when a figure of a cluster stays beyond a threshold."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "alr"), editable=False
    )
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="alerts")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="alerts")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    kind = models.CharField(max_length=32, choices=AlertKind.choices)
    # Of kinds of groups; empty: whichever is worst.
    group = models.CharField(max_length=GROUP_CHARS_MAX, blank=True)
    threshold = models.BigIntegerField()
    for_s = models.PositiveIntegerField()
    # Empty: those who manage the organisation.
    emails = ArrayField(models.CharField(max_length=EMAIL_CHARS_MAX), default=list, blank=True)
    # Counts changes of what is asked for: the ETag.
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    state = models.CharField(max_length=16, choices=AlertState.choices, default=AlertState.OK.value)
    changed_at = models.DateTimeField(default=now)
    # When it last went over to firing; a change of what is asked for leaves it.
    fired_at = models.DateTimeField(null=True, blank=True)
    # Since when every look spoke against `state`.
    contrary_since = models.DateTimeField(null=True, blank=True)
    # The last look: what it found (None: it could not tell), and whose figure it is.
    evaluated_at = models.DateTimeField(null=True, blank=True)
    value = models.BigIntegerField(null=True, blank=True)
    subject = models.CharField(max_length=GROUP_CHARS_MAX, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(threshold__gte=0), name="alerts_are_not_negative"),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="alerts_newest"),
        )

    def __str__(self) -> str:
        return self.name

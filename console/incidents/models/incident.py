"""Incidents."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from console.incidents.choices import IncidentKind, IncidentState

TITLE_CHARS_MAX = 200


class Incident(models.Model):
    """Something that is or was wrong."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "inc"), editable=False
    )
    # Null: the service as a whole, which every organisation may see.
    organization_id = models.CharField(max_length=ID_CHARS_MAX, null=True, blank=True)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX, blank=True)
    kind = models.CharField(max_length=32, choices=IncidentKind.choices)
    # What tells it from others of its kind: a cluster, an operation, a cell.
    subject = models.CharField(max_length=64)
    state = models.CharField(max_length=16, choices=IncidentState.choices)
    title = models.CharField(max_length=TITLE_CHARS_MAX)
    # `[{"at": RFC 3339, "text": …}]`, oldest first.
    updates = models.JSONField(default=list)
    opened_at = models.DateTimeField(default=now)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["kind", "subject"],
                condition=~Q(state=IncidentState.CLOSED.value),
                name="one_incident_a_subject",
            ),
        )
        indexes = (
            models.Index(fields=["organization_id", "-opened_at", "-id"], name="incidents_newest"),
            models.Index(fields=["state", "-opened_at"], name="incidents_by_state"),
        )

    def __str__(self) -> str:
        return self.title

"""The table of incidents."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from console.incidents.choices import IncidentKind, IncidentState

TITLE_CHARS_MAX = 200


class Incident(models.Model):
    """A fault of the service or of a cluster, from its beginning to its end."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "inc"), editable=False
    )
    # Null: it concerns the service as a whole, and every organization may see it.
    organization_id = models.CharField(max_length=ID_CHARS_MAX, null=True, blank=True)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX, blank=True)
    kind = models.CharField(max_length=32, choices=IncidentKind.choices)
    # The id of the cluster, operation or cell it is about: one incident of a kind and subject is
    # open.
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

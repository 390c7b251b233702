"""JSON shapes of incidents."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.incidents.choices import SHOWN_STATES, IncidentKind
from console.incidents.models import Incident


class IncidentQuerySerializer(serializers.Serializer[Any]):
    """The query parameters of a list of incidents."""

    state = serializers.ChoiceField(choices=SHOWN_STATES, required=False)
    cluster_id = serializers.RegexField(r"^cl_[a-z2-7]{20}$", required=False)


class IncidentUpdateSerializer(serializers.Serializer[Any]):
    """An update of an incident."""

    at = serializers.DateTimeField()
    text = serializers.CharField()


class IncidentSerializer(serializers.ModelSerializer[Incident]):
    """A fault of the service or of a cluster."""

    cluster_id = serializers.SerializerMethodField(
        help_text="Null: it concerns the service as a whole."
    )
    kind = serializers.ChoiceField(choices=IncidentKind.choices)
    state = serializers.ChoiceField(choices=SHOWN_STATES)
    updates = IncidentUpdateSerializer(many=True, help_text="Oldest first.")

    class Meta:
        model = Incident
        fields: tuple[str, ...] = (
            *("id", "cluster_id", "kind", "state", "title", "opened_at", "closed_at", "updates"),
        )
        read_only_fields = fields

    def get_cluster_id(self, incident: Incident) -> str | None:
        """Returns the cluster's id; None where the incident concerns the service as a whole."""
        return incident.cluster_id or None

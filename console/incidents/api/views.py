"""Endpoints of incidents."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common.api.views import ListAction, RetrieveAction
from console.incidents.api import examples
from console.incidents.api import serializers as shapes
from console.incidents.choices import OF_STAFF, SHOWN_STATES
from console.incidents.models import Incident


class IncidentViewSet(ListAction, RetrieveAction):
    """Faults of the organization's clusters, or of the service as a whole."""

    queryset = Incident.objects.filter(state__in=SHOWN_STATES)
    serializer_class = shapes.IncidentSerializer
    query_serializers = {"list": shapes.IncidentQuerySerializer}
    examples = examples.INCIDENTS
    lookup_value_regex = "inc_[a-z2-7]+"
    list_ordering = ("-opened_at", "-id")

    def get_queryset(self) -> Any:
        """Returns the organization's incidents, and those of the service as a whole."""
        if getattr(self, "swagger_fake_view", False):
            return Incident.objects.none()
        own = Q(organization_id=self.organization_id)
        of_service = Q(organization_id=None) & ~Q(kind__in=OF_STAFF)
        visible = Incident.objects.filter(own | of_service, state__in=SHOWN_STATES)
        if getattr(self, "action", None) != "list":
            return visible
        return visible.filter(**{name: value for name, value in self.query().items() if value})

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Newest first."""
        return super().list(request, *args, **kwargs)

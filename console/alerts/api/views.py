"""Endpoints of alerts."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from console.alerts import services
from console.alerts.api import examples
from console.alerts.api import serializers as shapes
from console.alerts.models import Alert
from console.base.common.api.views import (
    CreateAction,
    DestroyAction,
    ListAction,
    RetrieveAction,
    UpdateAction,
)


class AlertViewSet(ListAction, RetrieveAction, CreateAction, UpdateAction, DestroyAction):
    """Alerts: a mail when a figure of a cluster stays beyond a threshold, and one when it is over.

    They are judged once a minute, which wakes no cluster.
    """

    queryset = Alert.objects.select_related("cluster")
    serializer_class = shapes.AlertSerializer
    input_serializers = {
        "create": shapes.AlertCreateSerializer,
        "partial_update": shapes.AlertUpdateSerializer,
    }
    query_serializers = {"list": shapes.AlertQuerySerializer}
    in_projects = True
    project_field = "cluster__project_id"
    lookup_value_regex = "alr_[a-z2-7]+"
    examples = examples.ALERTS

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Newest first."""
        return super().list(request, *args, **kwargs)

    def get_queryset(self) -> Any:
        """Returns the organization's alerts, or those of the cluster that the query names."""
        rows = super().get_queryset()
        if getattr(self, "action", None) != "list" or getattr(self, "swagger_fake_view", False):
            return rows
        return rows.filter(**self.query())

    def perform_create(self, data: dict[str, Any]) -> object:
        """Creates an alert of a cluster."""
        return services.create_alert(actor=self.actor, **data)

    def perform_update(self, instance: Alert, data: dict[str, Any]) -> object:
        """Changes an alert. With another threshold or group it begins again as OK."""
        return services.update_alert(actor=self.actor, alert=instance, changes=data)

    def perform_destroy(self, instance: Alert) -> None:
        """Removes an alert."""
        services.remove_alert(actor=self.actor, alert=instance)

"""Endpoints of metrics, for an organization's own Prometheus."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from console.base.common.actor import Actor
from console.base.common.api.views import ApiView
from provisioning.administration.services.metrics import CONTENT_TYPE, metrics_text
from provisioning.clusters.api.bases import ClusterViewSet
from provisioning.models import Cluster

MEDIA_TYPE = CONTENT_TYPE.partition(";")[0]
TEXT = {(200, MEDIA_TYPE): OpenApiTypes.STR}
# A cluster costs three reads, and Prometheus gives up after its scrape timeout.
CLUSTERS_MAX = 200


class MetricsView(ApiView):
    """Metrics of all clusters that the caller may see."""

    in_projects = True

    @extend_schema(operation_id="metrics_retrieve", responses=TEXT)
    def get(self, request: Request) -> HttpResponseBase:
        """OpenMetrics text: clusters, topics, consumer groups. At most the 200 newest clusters.

        Counters are as of the keeper's last look, some seconds ago, and begin anew with a broker.
        """
        return metrics_response(clusters_of(self.actor))

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Accepts any media type, so that a client that asks for text alone still gets problems."""
        return super().perform_content_negotiation(request, force=True)


class ClusterMetricsViewSet(ClusterViewSet):
    """Metrics of one cluster."""

    @extend_schema(operation_id="clusters_metrics_retrieve", responses=TEXT)
    def retrieve(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """The same of one cluster. It is not woken by it."""
        return metrics_response([self.cluster])

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Accepts any media type, as `MetricsView` does."""
        return super().perform_content_negotiation(request, force=True)


def clusters_of(actor: Actor) -> QuerySet[Cluster]:
    """The newest `CLUSTERS_MAX` clusters that the actor may see and that are not deleted."""
    clusters = Cluster.objects.readable(actor).active()
    return clusters.order_by("-created_at", "-id")[:CLUSTERS_MAX]


def metrics_response(clusters: Any) -> HttpResponse:
    """The answer with the metrics of these clusters, as OpenMetrics text."""
    return HttpResponse(metrics_text(clusters), content_type=CONTENT_TYPE)

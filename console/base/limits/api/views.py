"""Endpoints of limits."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common.actor import Permission
from console.base.common.api.views import ApiViewSet, CreateAction, ListAction, RetrieveAction
from console.base.limits import services
from console.base.limits.api import examples
from console.base.limits.api import serializers as shapes
from console.base.limits.models import LimitRequest


class LimitViewSet(ApiViewSet):
    """Published limits."""

    serializer_class = shapes.LimitSerializer
    query_serializers = {"list": shapes.LimitsQuerySerializer}
    examples = {"list": examples.LIMITS["GET"]}

    @extend_schema(operation_id="limits_list")
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Lists every limit by name, with how much the organization or one cluster uses."""
        query = self.query()
        limits = services.list_limits(
            organization_id=self.organization_id, cluster_id=query.get("cluster_id", "")
        )
        return self.page(limits, key=lambda limit: limit.name)


class LimitRequestViewSet(ListAction, RetrieveAction, CreateAction):
    """Requests to raise limits, newest first."""

    queryset = LimitRequest.objects.all()
    serializer_class = shapes.LimitRequestSerializer
    input_serializers = {"create": shapes.LimitRequestCreateSerializer}
    permissions_required = {"create": Permission.MANAGE}
    examples = examples.REQUESTS
    lookup_value_regex = "lrq_[a-z2-7]+"

    def perform_create(self, data: dict[str, Any]) -> object:
        """Stores the request, which staff answer."""
        return services.request_limit(actor=self.actor, **data)

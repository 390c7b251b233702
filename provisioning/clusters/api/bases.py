"""Bases of the endpoints below `/clusters/{cluster_id}`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from console.base.common.actor import require_permission
from console.base.common.api.permissions import needed_permission
from console.base.common.api.schema import Schema
from console.base.common.api.views import ApiViewSet
from console.base.common.errors import NotFound
from provisioning.models import Cluster

# Such a list costs one read of the metadata store however long it is: tools may read all at once.
WHOLE_LIST_MAX = 2_000
PATH_PARAMETERS = {
    "cluster_id": "The cluster's id.",
    "name": "The topic's name.",
    "topic": "The topic's id, as Kafka writes it.",
    "group": (
        "The group's name, percent-encoded: `a/b` is `a%2Fb`. The names `.` and `..`, which would "
        "be steps in the path, have a `~` before them, and so have names that are only `~` before "
        "one of these: `..` is `~..`, `~..` is `~~..`."
    ),
}


class ClusterSchema(Schema):
    """Adds to the OpenAPI file the parameters of the address."""

    def get_override_parameters(self) -> list[Any]:
        """The path, query and header parameters of the action."""
        parameters = super().get_override_parameters()
        for name, description in PATH_PARAMETERS.items():
            if f"{{{name}}}" in self.path:
                parameters.append(
                    OpenApiParameter(name, OpenApiTypes.STR, "path", description=description)
                )
        return parameters

    def get_response_serializers(self) -> Any:
        """The answers that the view names, such as `responses = {"create": {202: …}}`."""
        named = getattr(self.view, "responses", {}).get(self._key())
        return named if named is not None else super().get_response_serializers()

    def get_operation_id(self) -> str:
        """The id that the view names, as for the second of its two DELETEs, or the usual one."""
        named: str | None = getattr(self.view, "operation_ids", {}).get(self._key())
        return named or str(super().get_operation_id())


class ClusterViewSet(ApiViewSet):
    """What lies in a cluster. The address has its id as `cluster_id`."""

    schema = ClusterSchema()
    in_projects = True

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Has audit entries written at the end: changes are made in the cell, outside of it all."""
        self.transaction.defers_audit = True
        super().initial(request, *args, **kwargs)

    def check_permissions(self, request: Request) -> None:
        """Checks the actor's rights in the cluster's project before anything else is done."""
        super().check_permissions(request)
        needed = needed_permission(request.method or "", self)
        require_permission(self.actor, needed, self.cluster.project_id)

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster of the address, if the actor may see it. Raises `NotFound`."""
        clusters = Cluster.objects.readable(self.actor).not_purged()
        cluster = clusters.filter(pk=self.kwargs["cluster_id"]).first()
        if cluster is None:
            raise NotFound
        return cluster

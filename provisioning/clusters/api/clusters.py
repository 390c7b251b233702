"""Endpoints of clusters, operations and regions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts.services import renew_actor
from console.base.common.actor import Permission
from console.base.common.api.pagination import KeysetPagination
from console.base.common.api.views import (
    ApiView,
    CreateAction,
    DestroyAction,
    ListAction,
    RetrieveAction,
    UpdateAction,
)
from console.base.common.conf import config
from console.base.common.transactions import outside_transaction
from provisioning.clusters.api import cluster_serializers as shapes
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import ClusterSchema
from provisioning.clusters.services import clusters
from provisioning.clusters.services.awaited import awaited_operations
from provisioning.clusters.services.deletion_guard import deletions_held
from provisioning.clusters.services.observation import ReadStatus, read_status
from provisioning.models import Cluster, Operation

# How often a request that waits for an operation looks whether it may still see it.
RENEW_EVERY_S = 3.0
ACCEPTED = {202: shapes.OperationSerializer}


class ClusterResourceViewSet(ListAction, RetrieveAction, CreateAction, UpdateAction, DestroyAction):
    """Clusters. Creating, deleting, waking and putting to sleep answer with an operation."""

    schema = ClusterSchema()
    in_projects = True
    project_field = "project_id"
    queryset = Cluster.objects.not_purged().select_related("cell")
    serializer_class = shapes.ClusterSerializer
    input_serializers = {
        "create": shapes.ClusterCreateSerializer,
        "partial_update": shapes.ClusterUpdateSerializer,
        "destroy": shapes.DeleteQuerySerializer,
        "undelete": shapes.UndeleteSerializer,
    }
    optional_bodies = ("destroy",)
    query_serializers = {
        "list": shapes.ClusterListQuerySerializer,
        "destroy": shapes.DeleteQuerySerializer,
    }
    responses = dict.fromkeys(
        ["create", "destroy", "undelete", "wake", "sleep", "suspend", "resume"], ACCEPTED
    )
    validates = ("destroy", "undelete", "wake", "sleep", "suspend", "resume")
    examples = examples.CLUSTERS
    lookup_value_regex = "cl_[a-z2-7]+"

    # What the cell said before a row was locked: of the cluster, and whether deletions are held.
    _read: ReadStatus
    _held: bool
    # The name that confirms a deletion.
    _name: str | None

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page of clusters, each with its status at this moment."""
        rows = self.paginate_queryset(self.get_queryset().filter(**self.query())) or []
        shown = [shapes.show_cluster(row) for row in rows]
        return self.get_paginated_response(shapes.ClusterSerializer(shown, many=True).data)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One cluster, with its status at this moment."""
        return self.answer(shapes.show_cluster(self.get_object()))

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Creates a cluster: 202 with the operation, whose `resource_id` is the new cluster."""
        return super().create(request, *args, **kwargs)

    def perform_create(self, data: dict[str, Any]) -> Response:
        """Begins to create a cluster."""
        return accepted(clusters.create_cluster(actor=self.actor, **data))

    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Changes the cluster's specification; only the members that the body has."""
        # Read before the row is locked: nothing waits behind that.
        self._read = read_status(kwargs[self.lookup_url_kwarg])
        return super().partial_update(request, *args, **kwargs)

    def perform_update(self, instance: Cluster, data: dict[str, Any]) -> object:
        """Changes the specification."""
        changed = clusters.update_cluster(actor=self.actor, cluster=instance, changes=data)
        return shapes.show_cluster(changed, self._read)

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Deletes a cluster: it can be restored for seven days.

        Needs its name (in the query or the body), and deletion protection switched off.
        """
        body = self.validated_input()
        self._name = self.query().get("name") or body.get("name")
        self._held = deletions_held()
        return super().destroy(request, *args, **kwargs)

    def perform_destroy(self, instance: Cluster) -> Response:
        """Begins to delete the cluster."""
        return self._begin(
            lambda: clusters.delete_cluster(
                actor=self.actor, cluster=instance, name=self._name, held=self._held
            )
        )

    def undelete(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Restores a deleted cluster."""
        instance, data = self.get_object(), self.validated_input()
        name = data.get("name")
        return self._begin(
            lambda: clusters.undelete_cluster(actor=self.actor, cluster=instance, name=name)
        )

    def wake(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Starts brokers now, as a client that connects does."""
        instance = self.get_object()
        return self._begin(lambda: clusters.wake_cluster(actor=self.actor, cluster=instance))

    def sleep(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Stops brokers as soon as nobody is connected, without waiting for the idle time."""
        instance = self.get_object()
        return self._begin(lambda: clusters.sleep_cluster(actor=self.actor, cluster=instance))

    def suspend(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Stops the cluster and keeps its data: it does not run, whoever connects, until resumed.

        What it stores is still billed.
        """
        instance = self.get_object()
        return self._begin(lambda: clusters.suspend_cluster(actor=self.actor, cluster=instance))

    def resume(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Lets a suspended cluster run again; it wakes up when a client connects."""
        instance = self.get_object()
        return self._begin(lambda: clusters.resume_cluster(actor=self.actor, cluster=instance))

    def _begin(self, change: Callable[[], Operation]) -> Response:
        """Makes a change and answers 202 with its operation; `validate_only` only checks it."""
        return self.validated(change) if self.validate_only else accepted(change())


class OperationViewSet(ListAction, RetrieveAction):
    """Operations."""

    schema = ClusterSchema()
    in_projects = True
    project_field = "cluster__project_id"
    queryset = Operation.objects.all()
    serializer_class = shapes.OperationSerializer
    query_serializers = {
        "list": shapes.OperationListQuerySerializer,
        "retrieve": shapes.OperationQuerySerializer,
    }
    examples = examples.OPERATIONS
    lookup_value_regex = "op_[a-z2-7]+"

    def filter_queryset(self, queryset: Any) -> Any:
        """The operations of one cluster, where a list's query names it."""
        resource_id = self.query().get("resource_id") if self.action == "list" else None
        return queryset.filter(cluster_id=resource_id) if resource_id else queryset

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One operation; with `wait` as soon as it is finished, or when the time is over."""
        deadline = time.monotonic() + self.query()["wait"]
        operation = self.get_object()
        while not operation.finished and (left_s := deadline - time.monotonic()) > 0:
            # Neither a transaction nor a connection is held meanwhile.
            with outside_transaction("an operation"):
                awaited_operations.wait(operation.pk, min(left_s, RENEW_EVERY_S))
            # Whoever lost the key, session or role while it waited must be shown nothing.
            request.auth = renew_actor(self.actor)
            operation = self.get_object()
        return self.answer(operation)


class RegionView(ApiView):
    """Regions that clusters can be created in."""

    schema = ClusterSchema()
    permissions_required = {"GET": Permission.BELONG}
    serializer_class = shapes.RegionSerializer
    pagination_class = KeysetPagination
    lists = ("GET",)
    examples = examples.REGIONS

    def get(self, request: Request) -> HttpResponseBase:
        """All of them, by id."""
        name = config().cell.region
        return self.page([{"id": name, "name": name}], key=lambda region: region["id"])


def accepted(operation: Operation) -> Response:
    """The answer 202 with an operation, and its address as `Location`."""
    return Response(
        shapes.OperationSerializer(operation).data,
        status=status.HTTP_202_ACCEPTED,
        headers={"Location": f"/api/v1/operations/{operation.pk}"},
    )

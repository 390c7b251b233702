"""Endpoints of staff."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status as http_status
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import InvoiceMonth, MissingInvoice
from console.base.common.errors import NotFound
from console.base.common.tenancy import organization_scope, system_scope
from console.base.limits import services as limits
from console.base.limits.models import LimitRequest
from console.incidents.models import Incident
from console.staff.api import examples
from console.staff.api import serializers as shapes
from console.staff.api.bases import StaffViewSet, filters_of
from console.staff.cells import list_cells
from provisioning.clusters.services.deletion_guard import break_glass
from provisioning.models import BreakGlass, Cluster, Operation


class StaffCellViewSet(StaffViewSet):
    """Cells: what runs in them, and how far usage is metered."""

    serializer_class = shapes.StaffCellSerializer
    examples = examples.CELLS

    @extend_schema(operation_id="staff_cells_list")
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Every cell, sorted by name."""
        with system_scope():
            cells = list_cells()
        return self.page(cells, key=lambda cell: cell.id)


class StaffClusterViewSet(StaffViewSet):
    """Clusters of every organization, as they run."""

    serializer_class = shapes.StaffClusterSerializer
    query_serializers = {"list": shapes.OrganizationQuerySerializer}
    examples = examples.CLUSTERS

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the clusters that match the query and are not purged."""
        return (
            Cluster.objects.not_purged().select_related("organization").filter(**filters_of(query))
        )


class StaffBreakGlassViewSet(StaffViewSet):
    """Permits to delete a cluster although deletions are held."""

    serializer_class = shapes.BreakGlassSerializer
    query_serializers = {"list": shapes.OrganizationQuerySerializer}
    input_serializers = {"permit_deletion": shapes.BreakGlassInputSerializer}
    examples = examples.BREAK_GLASS

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the rows that match the query."""
        return BreakGlass.objects.filter(**filters_of(query))

    @extend_schema(responses={201: shapes.BreakGlassSerializer})
    def permit_deletion(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """Permits one deletion of a cluster until the permit expires. The audit log of its
        organization has an entry with the reason.
        """
        data = self.validated_input()
        with system_scope():
            owner = Cluster.objects.filter(pk=id).values_list("organization_id").first()
        if owner is None:
            raise NotFound
        (organization_id,) = owner
        with organization_scope(organization_id):
            cluster = Cluster.objects.select_for_update(no_key=True).get(pk=id)
            permit = break_glass(
                actor=self.staff_actor(organization_id),
                cluster=cluster,
                reason=data["reason"],
                lasts_s=data["expires_in_s"],
            )
            return self.answer(permit, status=http_status.HTTP_201_CREATED)


class StaffOperationViewSet(StaffViewSet):
    """Operations of every organization."""

    serializer_class = shapes.StaffOperationSerializer
    query_serializers = {"list": shapes.OperationQuerySerializer}
    examples = examples.OPERATIONS

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the rows that match the query."""
        return Operation.objects.select_related("organization").filter(**filters_of(query))


class StaffIncidentViewSet(StaffViewSet):
    """Incidents of every organization and of the service, suspected ones too."""

    serializer_class = shapes.StaffIncidentSerializer
    query_serializers = {"list": shapes.StaffIncidentQuerySerializer}
    examples = examples.INCIDENTS
    list_ordering = ("-opened_at", "-id")

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the rows that match the query."""
        return Incident.objects.filter(**filters_of(query))


class StaffInvoiceMonthViewSet(StaffViewSet):
    """The months that are issued by themselves, and how far each is."""

    serializer_class = shapes.InvoiceMonthSerializer
    examples = examples.INVOICE_MONTHS
    list_ordering = ("-month",)

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns every month that was begun."""
        return InvoiceMonth.objects.all()


class StaffMissingInvoiceViewSet(StaffViewSet):
    """Invoices that could not be issued, until they are."""

    serializer_class = shapes.MissingInvoiceSerializer
    query_serializers = {"list": shapes.MissingInvoiceQuerySerializer}
    examples = examples.MISSING_INVOICES

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the rows that match the query."""
        rows = MissingInvoice.objects.select_related("organization")
        return rows.filter(**filters_of(query))


class StaffLimitRequestViewSet(StaffViewSet):
    """Requests for higher limits, with their answers."""

    serializer_class = shapes.StaffLimitRequestSerializer
    query_serializers = {"list": shapes.LimitRequestQuerySerializer}
    input_serializers = {
        "grant_request": shapes.GrantSerializer,
        "refuse_request": shapes.RefuseSerializer,
    }
    examples = examples.LIMIT_REQUESTS

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the rows that match the query."""
        return LimitRequest.objects.filter(**filters_of(query))

    def grant_request(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """Grants the requested value or another one. It takes effect within half a minute."""
        return self._answer_request(id, limits.grant_limit)

    def refuse_request(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """Refuses a request, with a reason."""
        return self._answer_request(id, limits.refuse_limit)

    def _answer_request(self, request_id: str, act: Callable[..., LimitRequest]) -> Response:
        data = self.validated_input()
        with system_scope():
            owner = LimitRequest.objects.filter(pk=request_id).values_list("organization_id")
            owner_row = owner.first()
        if owner_row is None:
            raise NotFound
        (organization_id,) = owner_row
        with organization_scope(organization_id):
            limit_request = LimitRequest.objects.select_for_update().get(pk=request_id)
            answered = act(actor=self.staff_actor(organization_id), request=limit_request, **data)
        return self.answer(answered)

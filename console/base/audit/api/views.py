"""Endpoints of the audit log."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.audit.api import examples
from console.base.audit.api import serializers as shapes
from console.base.audit.export import CONTENT_TYPES, CSV, JSONL, export_entries
from console.base.audit.names import names_of, targets_of
from console.base.audit.reading import filter_entries
from console.base.common.actor import Permission
from console.base.common.api.views import ListAction
from console.base.common.models import AuditEntry
from console.base.common.waiting import CountedParts


class AuditLogViewSet(ListAction):
    """The audit log: what was changed and which records were read, by whom, and from where."""

    queryset = AuditEntry.objects.all()
    serializer_class = shapes.AuditEntrySerializer
    query_serializers = {
        "list": shapes.AuditQuerySerializer,
        "export": shapes.AuditExportQuerySerializer,
    }
    permissions_required = {"list": Permission.MANAGE, "export": Permission.MANAGE}
    examples = examples.ENTRIES

    @extend_schema(operation_id="audit_log_list")
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Lists entries, newest first. Changes by Kafka clients appear some seconds late.

        Who reads records of a topic is in the log at once (`message.begin_reading`), and what they
        read (`message.read`) ten minutes after they last did, or after an hour.
        """
        filters = self.query()
        rows = self.paginate_queryset(filter_entries(self.get_queryset(), filters)) or []
        names, targets = names_of(rows), targets_of(rows)
        shown = [
            shapes.show_entry(row, names[row.actor_kind, row.actor_id], target)
            for row, target in zip(rows, targets, strict=True)
        ]
        return self.get_paginated_response(shown)

    @extend_schema(
        operation_id="audit_log_export",
        responses={
            (200, CONTENT_TYPES[JSONL]): OpenApiTypes.STR,
            (200, CONTENT_TYPES[CSV].partition(";")[0]): OpenApiTypes.STR,
        },
    )
    def export(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Downloads all matching entries as one file, oldest first."""
        filters = self.query()
        kind = filters.pop("format")
        parts = export_entries(
            organization_id=self.organization_id, filters=filters, kind=kind, show=shapes.show_entry
        )
        name = f"audit-log.{kind}"
        return StreamingHttpResponse(
            CountedParts(parts, organization_id=self.organization_id),
            content_type=CONTENT_TYPES[kind],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Does not refuse a client that accepts the file's type alone: problems are JSON anyway."""
        return super().perform_content_negotiation(request, force=True)

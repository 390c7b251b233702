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
from console.base.audit.export import CONTENT_TYPES, CSV, JSONL, export
from console.base.audit.names import names_of
from console.base.audit.reading import filtered
from console.base.common.actor import Permission
from console.base.common.api.views import ListAction
from console.base.common.models import AuditEntry


class AuditLogViewSet(ListAction):
    """What was changed, by whom, from where."""

    queryset = AuditEntry.objects.all()
    serializer_class = shapes.AuditEntrySerializer
    permissions_required = {"list": Permission.MANAGE, "export": Permission.MANAGE}
    examples = examples.ENTRIES

    @extend_schema(operation_id="audit_log_list", parameters=[shapes.AuditQuerySerializer])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Newest first. What Kafka clients changed is there some seconds later, at its time."""
        del request, args, kwargs
        wanted = self.validated_query(shapes.AuditQuerySerializer)
        rows = self.paginate_queryset(filtered(self.get_queryset(), wanted)) or []
        names = names_of(rows)
        shown = [shapes.show_entry(row, names[row.actor_kind, row.actor_id]) for row in rows]
        return self.get_paginated_response(shown)

    @extend_schema(
        operation_id="audit_log_export",
        parameters=[shapes.AuditExportQuerySerializer],
        responses={
            (200, CONTENT_TYPES[JSONL]): OpenApiTypes.STR,
            (200, CONTENT_TYPES[CSV].partition(";")[0]): OpenApiTypes.STR,
        },
    )
    def export(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """All entries that match as one file, oldest first."""
        del request, args, kwargs
        wanted = self.validated_query(shapes.AuditExportQuerySerializer)
        kind = wanted.pop("format")
        parts = export(
            organization_id=self.organization_id, wanted=wanted, kind=kind, show=shapes.show_entry
        )
        name = f"audit-log.{kind}"
        return StreamingHttpResponse(
            parts,
            content_type=CONTENT_TYPES[kind],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Whoever asks for a file alone gets a problem as JSON all the same."""
        return super().perform_content_negotiation(request, force=True)

"""Endpoints for leaving the service: an archive of the organization, and its closing."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts import services
from console.base.accounts.api import people_examples as examples
from console.base.accounts.api import serializers
from console.base.accounts.errors import SecondFactorCodeWrong
from console.base.common.actor import Permission
from console.base.common.api.views import ApiView
from console.base.common.waiting import CountedParts

ZIP = "application/zip"


class ExportView(ApiView):
    """The organization's data, without secrets and without records of topics."""

    permissions_required = {"GET": Permission.MANAGE}

    @extend_schema(operation_id="organization_export", responses={(200, ZIP): OpenApiTypes.BINARY})
    def get(self, request: Request) -> HttpResponseBase:
        """Downloads a ZIP archive of JSON lines, one file for each table, sent while it is read."""
        parts = services.export_organization(actor=self.actor)
        return StreamingHttpResponse(
            CountedParts(parts, organization_id=self.organization_id),
            content_type=ZIP,
            headers={"Content-Disposition": 'attachment; filename="organization.zip"'},
        )

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Does not refuse a client that accepts the file's type alone: problems are JSON anyway."""
        return super().perform_content_negotiation(request, force=True)


class CloseView(ApiView):
    """Closing of the organization."""

    serializer_class = serializers.OrganizationSerializer
    input_serializers = {"POST": serializers.CloseSerializer}
    permissions_required = {"POST": Permission.OWN}
    examples = {"POST": examples.CLOSE}

    def post(self, request: Request) -> Response:
        """Closes the organization: clusters are deleted, keys revoked, and a last invoice follows.

        Only a signed-in person may do it. Afterwards its people can still read, its invoices above
        all.
        """
        try:
            closed = services.close_organization(actor=self.actor, **self.validated_input())
        except SecondFactorCodeWrong as error:
            return self.refuse(error)
        return self.answer(closed)

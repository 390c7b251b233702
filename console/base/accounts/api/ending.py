"""Endpoints of an organisation's end: all of it as a file, and its closing."""

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

ZIP = "application/zip"


class ExportView(ApiView):
    """All that the organisation has, but for secrets and for records of topics."""

    permissions_required = {"GET": Permission.MANAGE}

    @extend_schema(operation_id="organization_export", responses={(200, ZIP): OpenApiTypes.BINARY})
    def get(self, request: Request) -> HttpResponseBase:
        """A ZIP archive of JSON lines, a file a table, sent while it is read."""
        del request
        return StreamingHttpResponse(
            services.export_organization(actor=self.actor),
            content_type=ZIP,
            headers={"Content-Disposition": 'attachment; filename="organization.zip"'},
        )

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Whoever asks for a file alone gets a problem as JSON all the same."""
        return super().perform_content_negotiation(request, force=True)


class CloseView(ApiView):
    """The end of the organisation."""

    serializer_class = serializers.OrganizationSerializer
    input_serializers = {"POST": serializers.CloseSerializer}
    permissions_required = {"POST": Permission.OWN}
    examples = {"POST": examples.CLOSE}

    def post(self, request: Request) -> Response:
        """Closes it for good. Its clusters are deleted, its keys end, a last invoice follows.

        Only a person who is signed in may. Afterwards its people can read, its invoices above all.
        """
        del request
        try:
            closed = services.close_organization(actor=self.actor, **self.validated_input())
        except SecondFactorCodeWrong as error:
            return self.refuse(error)
        return self.answer(closed)

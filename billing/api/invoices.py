"""Endpoints of prices, invoices and billing details."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api import invoice_examples as examples
from billing.api import invoice_serializers as shapes
from billing.models import Invoice, PriceVersion
from billing.periods import month_of
from billing.receivables.services import is_collected, payments_of
from billing.services.details import billing_details, update_billing_details
from billing.services.documents import read_document
from billing.services.evidence import make_evidence, usage_rows
from console.base.common.actor import Permission
from console.base.common.api import etags
from console.base.common.api.views import ApiView, ListAction, RetrieveAction
from console.base.common.clock import now

PDF = "application/pdf"
ZIP = "application/zip"
_READS = ("list", "retrieve", "pdf", "evidence")


class PricesView(ApiView):
    """What everything costs."""

    permissions_required = {"GET": Permission.BELONG}
    serializer_class = shapes.PriceListSerializer
    examples = {"GET": examples.PRICES}

    @extend_schema(operation_id="prices_retrieve")
    def get(self, request: Request) -> Response:
        """The prices of this month: they are the same for everybody and change with a month."""
        version = PriceVersion.objects.in_force(month_of(now()))
        by_meter = {price.meter: price for price in version.prices.all()}
        listed = [by_meter[meter] for meter in version.catalog().prices]
        return self.answer(
            {
                "id": version.pk,
                "valid_from": version.valid_from,
                "currency": version.currency,
                "prices": listed,
            }
        )


class InvoiceListQuery(serializers.Serializer[Any]):
    """The parameters of the query."""

    month = serializers.RegexField(
        r"^2[0-9]{3}-(0[1-9]|1[0-2])$",
        required=False,
        help_text="YYYY-MM: only those of this month.",
    )


class InvoiceViewSet(ListAction, RetrieveAction):
    """Invoices and credit notes. An issued one never changes; a void one has a credit note."""

    queryset = Invoice.objects.published().select_related("document", "credit_note", "receivable")
    serializer_class = shapes.InvoiceSerializer
    output_serializers = {"list": shapes.InvoiceSummarySerializer}
    query_serializers = {"list": InvoiceListQuery}
    permissions_required = dict.fromkeys(_READS, Permission.BILLING)
    # They answer 409 for an invoice that is not issued, or whose PDF is not made yet.
    conflicts = ("pdf", "evidence")
    examples = examples.INVOICES
    lookup_value_regex = "inv_[a-z2-7]+"

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Invoices and credit notes, newest first, without their lines."""
        return super().list(request, *args, **kwargs)

    def filter_queryset(self, queryset: Any) -> Any:
        """Only the invoices of one month, if a list's query names one."""
        month = self.query().get("month") if self.action == "list" else None
        return queryset.filter(month=f"{month}-01") if month else queryset

    def get_queryset(self) -> Any:
        """The invoices with the state that is shown, which depends on the day."""
        rows: Any = super().get_queryset()
        return rows.with_shown_state(collected=is_collected(), today=now().date())

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One invoice with its lines; each names the usage rows that its quantity is the sum of."""
        invoice = self.get_object()
        ids: dict[tuple[str, str], list[str]] = {}
        for pk, cluster_id, meter in usage_rows(invoice).values_list("pk", "cluster_id", "meter"):
            ids.setdefault((cluster_id, meter), []).append(pk)
        context = {"request": self.request, "view": self, "usage_row_ids": ids}
        context["payments"] = payments_of(invoice.pk)
        return Response(shapes.InvoiceSerializer(invoice, context=context).data)

    @extend_schema(responses={(200, PDF): OpenApiTypes.BINARY})
    def pdf(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """The invoice's PDF, made once after issuing; 409 `document_pending` until it is made."""
        invoice = self.get_object()
        return _file_response(read_document(invoice), PDF, f"{invoice.number}.pdf")

    @extend_schema(responses={(200, ZIP): OpenApiTypes.BINARY})
    def evidence(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """A zip with the usage behind the invoice, and a program that recomputes it."""
        invoice = self.get_object()
        return _file_response(make_evidence(invoice), ZIP, f"{invoice.number}-evidence.zip")

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Accepts any `Accept` header: a client that asks for PDF only also gets errors as JSON."""
        return super().perform_content_negotiation(request, force=True)


class BillingDetailsView(ApiView):
    """Whom invoices are addressed to."""

    for_closed = ("PATCH",)
    serializer_class = shapes.BillingDetailsSerializer
    input_serializers = {"PATCH": shapes.BillingDetailsSerializer}
    permissions_required = {"GET": Permission.BILLING, "PATCH": Permission.BILLING}
    examples = {"GET": examples.DETAILS, "PATCH": examples.DETAILS_CHANGE}

    @extend_schema(operation_id="billing_details_retrieve")
    def get(self, request: Request) -> Response:
        """The details that the next invoice will have."""
        return self.answer(billing_details(self.organization_id))

    @extend_schema(operation_id="billing_details_partial_update")
    def patch(self, request: Request) -> Response:
        """Changes them for invoices to come; issued ones never change."""
        details = billing_details(self.organization_id, lock=True)
        etags.check_if_match(request, details)
        changes = self.validated_input(partial=True)
        return self.answer(
            update_billing_details(actor=self.actor, details=details, changes=changes)
        )


def _file_response(data: bytes, content_type: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'inline; filename="{name}"'}
    return HttpResponse(data, content_type=content_type, headers=headers)

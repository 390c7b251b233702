"""Endpoints of staff for what customers owe: who does, and money that is entered by a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status as http_status
from rest_framework.request import Request
from rest_framework.response import Response

from billing.choices import PaymentMethod, ReceivableState
from billing.collection.refunds import request_refund
from billing.models import Payment, Receivable
from billing.receivables import services as receivables
from console.base.common.clock import now
from console.base.common.errors import NotFound
from console.base.common.tenancy import organization_scope, system_scope
from console.staff.api import money_examples as examples
from console.staff.api import money_serializers as shapes
from console.staff.api.bases import StaffViewSet, filters_of
from console.staff.api.serializers import OrganizationQuerySerializer


class StaffReceivableViewSet(StaffViewSet):
    """Who owes what."""

    serializer_class = shapes.StaffReceivableSerializer
    query_serializers = {"list": shapes.ReceivableQuerySerializer}
    input_serializers = {"write_off": shapes.WriteOffInputSerializer}
    examples = examples.RECEIVABLES
    list_ordering = ("-created_at", "-invoice_id")

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the receivables that match the query, the open ones without a state."""
        rows = Receivable.objects.select_related("organization", "invoice")
        filters = filters_of({**query, "overdue": None})
        filters.setdefault("state", ReceivableState.OPEN.value)
        rows = rows.filter(**filters)
        if not query["overdue"]:
            return rows
        return rows.overdue(now().date()) if receivables.is_collected() else rows.none()

    @extend_schema(responses={201: shapes.StaffReceivableSerializer})
    def write_off(self, request: Request, **kwargs: Any) -> Response:
        """Gives up what is open of an invoice: it is uncollectible from then on. A payment that
        names it takes that back."""
        data = self.validated_input()
        organization_id = _owner_of(Receivable, data["invoice_id"])
        with organization_scope(organization_id):
            receivables.write_off(**data, by=self.staff_actor(organization_id))
            row = Receivable.objects.select_related("organization", "invoice").get(
                pk=data["invoice_id"]
            )
            return self.answer(row, status=http_status.HTTP_201_CREATED)


class StaffPaymentViewSet(StaffViewSet):
    """Money that came in, and that is entered here where no card was charged."""

    serializer_class = shapes.StaffPaymentSerializer
    query_serializers = {"list": OrganizationQuerySerializer}
    input_serializers = {
        "record": shapes.PaymentInputSerializer,
        "refund": shapes.RefundInputSerializer,
    }
    output_serializers = {"refund": shapes.StaffRefundSerializer}
    examples = examples.PAYMENTS

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the payments that match the query."""
        return Payment.objects.select_related("organization").filter(**filters_of(query))

    @extend_schema(responses={201: shapes.StaffPaymentSerializer})
    def record(self, request: Request, **kwargs: Any) -> Response:
        """Enters a payment. It pays named invoices first, then the oldest; the rest is credit."""
        data = self.validated_input()
        reference = data.pop("reference", None)
        if reference is not None:
            with system_scope():
                owed = receivables.find_receivable(reference)
            data["organization_id"] = owed.organization_id
            data["invoice_ids"] = [owed.pk, *data.get("invoice_ids", ())]
        organization_id = data["organization_id"]
        with organization_scope(organization_id):
            receivables.require_currency(organization_id, data["currency"])
            payment = receivables.record_payment(**data, by=self.staff_actor(organization_id))
            row = Payment.objects.select_related("organization").get(pk=payment.pk)
            return self.answer(row, status=http_status.HTTP_201_CREATED)

    @extend_schema(responses={201: shapes.StaffRefundSerializer})
    def refund(self, request: Request, **kwargs: Any) -> Response:
        """Enters a refund that was made; for a card, has Stripe make it. What is given back is
        owed again, unless it is goodwill."""
        data = self.validated_input()
        payment_id = data.pop("payment_id")
        organization_id = _owner_of(Payment, payment_id)
        by = self.staff_actor(organization_id)
        with organization_scope(organization_id):
            payment = Payment.objects.get(pk=payment_id)
            by_card = payment.method == PaymentMethod.CARD
            if by_card:
                asked = request_refund(payment=payment, by=by, **data)
                known = {"refund": asked, "external_id": asked.request_id, "made": False}
            else:
                entered = receivables.refund_payment(payment_id=payment_id, by=by, **data)
                known = {"refund": entered, "external_id": entered.external_id, "made": True}
            return self.answer(_refund_shape(known), status=http_status.HTTP_201_CREATED)


class StaffCreditViewSet(StaffViewSet):
    """Credits that are granted."""

    serializer_class = shapes.StaffCreditSerializer
    input_serializers = {"grant": shapes.CreditInputSerializer}
    examples = examples.CREDITS

    @extend_schema(responses={201: shapes.StaffCreditSerializer})
    def grant(self, request: Request, **kwargs: Any) -> Response:
        """Grants credit, which pays open invoices at once, oldest first, and then the next ones."""
        data = self.validated_input()
        organization_id = data["organization_id"]
        with organization_scope(organization_id):
            receivables.require_currency(organization_id, data["currency"])
            credit = receivables.grant_credit(**data, by=self.staff_actor(organization_id))
            return self.answer(credit, status=http_status.HTTP_201_CREATED)


def _owner_of(model: type[Receivable | Payment], pk: str) -> str:
    """The id of the organization that a row belongs to. Raises `NotFound`."""
    with system_scope():
        owner = model._default_manager.filter(pk=pk).values_list("organization_id").first()
    if owner is None:
        raise NotFound
    return str(owner[0])


def _refund_shape(known: Mapping[str, Any]) -> dict[str, Any]:
    refund = known["refund"]
    return {
        "id": refund.pk,
        "payment_id": refund.payment_id,
        "organization_id": refund.organization_id,
        "external_id": known["external_id"],
        "amount_minor": refund.amount_minor,
        "reason": refund.reason,
        "entered_by": refund.entered_by,
        "made": known["made"],
        "created_at": refund.created_at,
    }

"""Endpoints of staff about payments: charges, and what does not reconcile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from billing.choices import AttemptState
from billing.models import MoneyDifference, MoneyReconciliation, PaymentAttempt
from console.staff.api import collection_examples as examples
from console.staff.api import collection_serializers as shapes
from console.staff.api.bases import StaffViewSet, filters_of


class StaffAttemptViewSet(StaffViewSet):
    """Charges of cards, of every organization."""

    serializer_class = shapes.StaffAttemptSerializer
    query_serializers = {"list": shapes.AttemptQuerySerializer}
    examples = examples.ATTEMPTS

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the rows that match the query."""
        failed = query.get("failed")
        filters = filters_of({"organization_id": query.get("organization_id")})
        rows = PaymentAttempt.objects.select_related("organization").prefetch_related("invoices")
        rows = rows.filter(**filters)
        if failed is None:
            return rows
        are_failed = {"state": AttemptState.FAILED}
        return rows.filter(**are_failed) if failed else rows.exclude(**are_failed)


class StaffDifferenceViewSet(StaffViewSet):
    """What does not agree between the ledger, the invoices and Stripe."""

    serializer_class = shapes.MoneyDifferenceSerializer
    query_serializers = {"list": shapes.DifferenceQuerySerializer}
    examples = examples.DIFFERENCES

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the rows that match the query."""
        rows = MoneyDifference.objects.all()
        lasts = query.get("open")
        return rows if lasts is None else rows.filter(ended_at__isnull=lasts)


class StaffReconciliationViewSet(StaffViewSet):
    """The comparisons of each night."""

    serializer_class = shapes.ReconciliationSerializer
    examples = examples.RECONCILIATIONS

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns every comparison."""
        return MoneyReconciliation.objects.all()

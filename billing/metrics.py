"""The control plane's metrics of invoices, for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count
from prometheus_client.metrics_core import Metric

from billing.choices import MissingKind
from billing.models import MissingInvoice
from billing.services.missing import unissued_months
from console.base.common.clock import now
from console.base.common.metrics import gauge


def invoice_metrics() -> Sequence[Metric]:
    """Invoices that are missing by kind, and closed months that nobody gets an invoice of."""
    rows = MissingInvoice.objects.values_list("kind").annotate(Count("pk"))
    counts = {(kind.value,): 0.0 for kind in MissingKind} | {(kind,): n for kind, n in rows}
    waiting = sum(1 for month in unissued_months(now()) if month.reason)
    return [
        gauge(
            "freshet_missing_invoices", "Invoices that could not be issued yet", ("kind",), counts
        ),
        gauge(
            "freshet_unissued_months",
            "Closed months that are not issued to anybody",
            (),
            {(): waiting},
        ),
    ]

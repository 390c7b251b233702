"""What of collection a person must look at, for incidents, and its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Count
from prometheus_client.metrics_core import Metric

from billing.choices import AttemptState, DifferenceKind, DunningStage, FailureKind
from billing.collection.common import takes_cards
from billing.collection.reconciliation import last_finished, open_differences
from billing.models import (
    Dunning,
    MoneyDifference,
    PaymentAttempt,
    StripeCursor,
    StripeEvent,
    UnpaidInvoice,
)
from billing.models.collection import LIVE_STATES
from console.base.common.clock import now
from console.base.common.metrics import gauge

# A comparison is due each night, events are read every ten minutes, and what Stripe says of an
# attempt is known within a day even where it keeps an error for the key.
COMPARED_WITHIN = timedelta(hours=36)
READ_WITHIN = timedelta(hours=3)
SETTLED_WITHIN = timedelta(hours=26)


def what_needs_a_person(at: datetime) -> tuple[int, str]:
    """How many differences are open, and why charges or comparisons are not made (empty where they
    are). Called in the system's scope."""
    differences = MoneyDifference.objects.filter(ended_at=None).count()
    return differences, _standstill(at) if takes_cards() else ""


def collection_metrics() -> Sequence[Metric]:
    """What is unpaid, under way and does not agree, for Prometheus. In the system's scope."""
    at = now()
    stages = {(stage.value,): 0.0 for stage in DunningStage if stage is not DunningStage.PAID}
    rows = Dunning.objects.exclude(stage=DunningStage.PAID).values_list("stage")
    stages |= {(stage,): count for stage, count in rows.annotate(Count("pk"))}
    attempts = {(state,): 0.0 for state in LIVE_STATES}
    live = PaymentAttempt.objects.filter(state__in=LIVE_STATES).values_list("state")
    attempts |= {(state,): count for state, count in live.annotate(Count("pk"))}
    differences = {(kind.value,): 0.0 for kind in DifferenceKind}
    differences |= {(kind,): count for kind, count in open_differences().items()}
    refused = UnpaidInvoice.objects.filter(ended_at=None, failure=FailureKind.REFUSED).count()
    events = StripeEvent.objects.filter(handled_at=None).count()
    compared = last_finished()
    ages = {} if compared is None else {(): (at - compared).total_seconds()}
    return [
        gauge(
            "freshet_dunned_organizations",
            "Organizations that owe, by how far their calendar is",
            ("stage",),
            stages,
        ),
        gauge("freshet_payment_attempts", "Charges that have not ended", ("state",), attempts),
        gauge(
            "freshet_refused_charges",
            "Invoices whose charge Stripe refused as a request",
            (),
            {(): refused},
        ),
        gauge(
            "freshet_stripe_events_waiting",
            "Events of Stripe that are to be handled",
            (),
            {(): events},
        ),
        gauge(
            "freshet_money_differences",
            "What does not agree between ledger, receivables and Stripe",
            ("kind",),
            differences,
        ),
        gauge(
            "freshet_reconciliation_age_seconds",
            "Time since money was compared; absent before the first time",
            (),
            ages,
        ),
    ]


def _standstill(at: datetime) -> str:
    """Why money is not collected or compared; empty where it is."""
    cursor = StripeCursor.objects.order_by("-read_to").first()
    if cursor is not None and at - cursor.read_to > READ_WITHIN:
        return "Stripe cannot be asked, so nothing is charged: see the worker's log."
    known = [AttemptState.REQUIRES_ACTION.value, AttemptState.PROCESSING.value]
    stuck = PaymentAttempt.objects.filter(state__in=set(LIVE_STATES) - set(known))
    if stuck.filter(created_at__lt=at - SETTLED_WITHIN).exists():
        return "Nobody knows what became of a charge: see the list of payment attempts."
    compared = last_finished()
    if compared is not None and at - compared > COMPARED_WITHIN:
        return "The ledger was not compared with Stripe last night."
    return ""

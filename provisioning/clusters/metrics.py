"""Metrics of clusters and operations, of all organizations together, for the operator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Count, Min
from prometheus_client.metrics_core import Metric

from console.base.common.clock import now
from console.base.common.metrics import gauge
from provisioning.choices import UNFINISHED, Intent, OperationState, OperationType
from provisioning.models import Cluster, Operation


def cluster_metrics() -> Sequence[Metric]:
    """The number of clusters by intent (`active`, `deleted`, `purged`)."""
    by_intent = Cluster.objects.values_list("intent").annotate(Count("pk"))
    counts = {(intent.value,): 0.0 for intent in Intent} | {(key,): n for key, n in by_intent}
    return [gauge("freshet_clusters", "Clusters by what is wanted of them", ("intent",), counts)]


def operation_metrics() -> Sequence[Metric]:
    """The number of operations by type and state, and the age of the oldest unfinished one."""
    by_state = Operation.objects.values_list("type", "state").annotate(Count("pk"))
    counts = {(kind.value, state.value): 0.0 for kind in OperationType for state in OperationState}
    counts |= {(kind, state): n for kind, state, n in by_state}
    unfinished = Operation.objects.filter(state__in=UNFINISHED)
    oldest = unfinished.aggregate(oldest=Min("created_at"))["oldest"]
    age_s = 0.0 if oldest is None else max(0.0, (now() - oldest) / timedelta(seconds=1))
    return [
        gauge("freshet_operations", "Operations by type and state", ("type", "state"), counts),
        gauge(
            "freshet_operations_oldest_seconds",
            "Age of the oldest operation that is not finished",
            (),
            {(): age_s},
        ),
    ]

"""The Prometheus metric of incidents."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count
from prometheus_client.metrics_core import Metric

from console.base.common.metrics import gauge
from console.incidents.choices import IncidentKind, IncidentState
from console.incidents.models import Incident


def incident_metrics() -> Sequence[Metric]:
    """Returns the number of open incidents of each kind."""
    open_kinds = Incident.objects.filter(state=IncidentState.OPEN).values_list("kind")
    counts = {(kind.value,): 0.0 for kind in IncidentKind}
    counts |= {(kind,): n for kind, n in open_kinds.annotate(Count("pk"))}
    return [gauge("freshet_incidents_open", "Incidents that are open", ("kind",), counts)]

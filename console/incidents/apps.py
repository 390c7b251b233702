"""The Django application of incidents."""

from __future__ import annotations

from django.apps import AppConfig


class IncidentsConfig(AppConfig):
    """Incidents: faults of the service or of a cluster that somebody must know of."""

    name = "console.incidents"
    label = "incidents"

    def ready(self) -> None:
        """Registers the metric that counts open incidents."""
        from console.base.common.metrics import register_metrics  # noqa: PLC0415
        from console.incidents import metrics  # noqa: PLC0415

        register_metrics("incidents", metrics.incident_metrics)

"""The application of incidents."""

from __future__ import annotations

from django.apps import AppConfig


class IncidentsConfig(AppConfig):
    """What is wrong with the service, or with a cluster."""

    name = "console.incidents"
    label = "incidents"

    def ready(self) -> None:
        """Tells Prometheus of those that are open."""
        from console.base.common.metrics import register_metrics  # noqa: PLC0415
        from console.incidents import metrics  # noqa: PLC0415

        register_metrics("incidents", metrics.incident_metrics)

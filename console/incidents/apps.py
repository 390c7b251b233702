"""The application of incidents."""

from __future__ import annotations

from django.apps import AppConfig


class IncidentsConfig(AppConfig):
    """What is wrong with the service, or with a cluster."""

    name = "console.incidents"
    label = "incidents"

    def ready(self) -> None:
        """Tells Prometheus of those that are open."""
        from console.base.common.metrics import register_estate  # noqa: PLC0415
        from console.incidents import estate  # noqa: PLC0415

        register_estate("incidents", estate.incident_metrics)

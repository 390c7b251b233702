"""The application of alerts."""

from __future__ import annotations

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """What customers want to be told of their clusters."""

    name = "console.alerts"
    label = "alerts"

    def ready(self) -> None:
        """Tells limits how many alerts there are."""
        from console.alerts.services import alerts_used  # noqa: PLC0415
        from console.base.limits.usage import register_usage  # noqa: PLC0415

        register_usage("alerts", alerts_used)

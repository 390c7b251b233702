"""The Django application of alerts."""

from __future__ import annotations

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Alerts: thresholds that customers set for figures of their clusters."""

    name = "console.alerts"
    label = "alerts"

    def ready(self) -> None:
        """Registers how alerts are counted for the limit, and named in the audit log."""
        from console.alerts.models import Alert  # noqa: PLC0415
        from console.alerts.services import alerts_used  # noqa: PLC0415
        from console.base.audit.names import names_in, register_target_namer  # noqa: PLC0415
        from console.base.limits.usage import register_usage  # noqa: PLC0415

        register_usage("alerts", alerts_used)
        register_target_namer("alert", names_in(Alert))

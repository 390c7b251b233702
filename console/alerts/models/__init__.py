"""The table of alerts."""

from console.alerts.models.alert import Alert

__all__ = ["Alert"]

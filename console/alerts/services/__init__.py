"""Changes by people, and the sweep."""

from console.alerts.services.changes import (
    alerts_used,
    create_alert,
    remove_alert,
    update_alert,
)
from console.alerts.services.mails import send_alert_mail
from console.alerts.services.sweeping import evaluate_alerts

__all__ = [
    "alerts_used",
    "create_alert",
    "evaluate_alerts",
    "remove_alert",
    "send_alert_mail",
    "update_alert",
]

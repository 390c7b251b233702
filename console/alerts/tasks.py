"""Tasks of alerts. Each calls the service of its name."""

from __future__ import annotations

from celery import shared_task

from console.alerts import services
from console.base.common.mail import mail_task


@shared_task(name="alerts.evaluate_alerts")
def evaluate_alerts() -> None:
    """Looks at every alert."""
    services.evaluate_alerts()


@mail_task("alerts.send_alert_mail")
def send_alert_mail(  # noqa: PLR0913 (what a mail says)
    *,
    organization_id: str,
    alert_id: str,
    state: str,
    value: str,
    subject: str,
    fired_subject: str = "",
    since: str = "",
    until: str = "",
) -> None:
    """Sends a mail; tried again while the mail server is away."""
    services.send_alert_mail(
        organization_id=organization_id,
        alert_id=alert_id,
        state=state,
        value=value,
        subject=subject,
        fired_subject=fired_subject,
        since=since,
        until=until,
    )

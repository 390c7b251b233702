"""Tasks of incidents. Each calls the service of its name."""

from __future__ import annotations

from celery import shared_task

from console.base.common.mail import mail_task
from console.incidents import services


@shared_task(name="incidents.sweep_incidents")
def sweep_incidents() -> None:
    """Opens and closes incidents."""
    services.sweep_incidents()


@mail_task("incidents.send_incident_mail")
def send_incident_mail(*, organization_id: str, incident_id: str, state: str) -> None:
    """Sends a mail; tried again while the mail server is away."""
    services.send_incident_mail(
        organization_id=organization_id, incident_id=incident_id, state=state
    )

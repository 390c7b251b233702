"""Tells people of incidents by mail."""

from __future__ import annotations

from django.core.mail import EmailMessage

from console.base.accounts.models import User
from console.base.accounts.services import managing_addresses
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import NO_ORGANIZATION, organization_scope, system_scope
from console.incidents.choices import IncidentKind, IncidentState
from console.incidents.models import Incident

TASK = "incidents.send_incident_mail"
# Nobody needs to do anything about the others.
MAILED = {
    IncidentKind.BROKERS_CRASHING.value,
    IncidentKind.BROKERS_UNHEALTHY.value,
    IncidentKind.CELL_UNREACHABLE.value,
    IncidentKind.KEEPER_SILENT.value,
    IncidentKind.MACHINE_LOST.value,
    IncidentKind.METADATA_FULL.value,
    IncidentKind.PLATFORM_UNREACHABLE.value,
    IncidentKind.OPERATION_STUCK.value,
    IncidentKind.TASKS_DELAYED.value,
}
TEXT = """\
{title}

{story}

{link}
"""


def enqueue_mail(incident: Incident) -> None:
    """Has a worker send the mail of what just happened once the transaction has committed."""
    if incident.kind not in MAILED:
        return
    enqueue_task(
        task=TASK,
        organization_id=incident.organization_id or NO_ORGANIZATION,
        arguments={
            "organization_id": incident.organization_id or "",
            "incident_id": incident.pk,
            "state": incident.state,
        },
    )


def send_incident_mail(*, organization_id: str, incident_id: str, state: str) -> None:
    """Sends the mail of an incident that opened or closed, to those whom it concerns.

    Without an organisation: to staff. A repeated one has the same Message-ID. None of an incident
    that there is not, or not in this organisation.
    """
    rows = Incident.objects.filter(pk=incident_id)
    if organization_id:
        with organization_scope(organization_id):
            incident = rows.filter(organization_id=organization_id).first()
            addresses = managing_addresses(organization_id=organization_id)
    else:
        with system_scope():
            incident = rows.filter(organization_id=None).first()
        staff = User.objects.filter(is_staff=True, is_active=True)
        addresses = sorted(staff.values_list("email", flat=True))
    if incident is None or not addresses:
        return
    story = "\n".join(f"{update['at']}  {update['text']}" for update in incident.updates)
    url = config().web.public_url
    text = TEXT.format(title=incident.title, story=story, link=f"{url}/incidents")
    over = state == IncidentState.CLOSED.value
    domain = url.split("://")[-1].split("/")[0].split(":")[0]
    headers = {"Message-ID": f"<{incident.pk}.{state}.{len(incident.updates)}@{domain}>"}
    subject = f"Over: {incident.title}" if over else incident.title
    EmailMessage(subject, text, to=addresses, headers=headers).send()

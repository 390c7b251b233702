"""Writes the mails of incidents: one when an incident opens, one when it closes."""

from __future__ import annotations

from django.core.mail import EmailMessage

from console.base.accounts.models import User
from console.base.accounts.services import managing_addresses
from console.base.common.conf import config
from console.base.common.mail_names import unlinked
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import NO_ORGANIZATION, organization_scope, system_scope
from console.incidents.choices import OF_STAFF, IncidentKind, IncidentState
from console.incidents.models import Incident

TASK = "incidents.send_incident_mail"
# The kinds that cause mails. About the others nobody needs to do anything.
MAILED = {
    IncidentKind.BROKERS_CRASHING.value,
    IncidentKind.BROKERS_UNHEALTHY.value,
    IncidentKind.CELL_UNREACHABLE.value,
    IncidentKind.DAMAGED_BATCH.value,
    IncidentKind.INVOICES_MISSING.value,
    IncidentKind.MONEY_DIFFERS.value,
    IncidentKind.KEEPER_SILENT.value,
    IncidentKind.MACHINE_LOST.value,
    IncidentKind.METADATA_FULL.value,
    IncidentKind.PLATFORM_UNREACHABLE.value,
    IncidentKind.OPERATION_STUCK.value,
    IncidentKind.TASKS_DELAYED.value,
    IncidentKind.USAGE_DIFFERS.value,
}
TEXT = """\
{title}

{story}

{link}
"""


def enqueue_mail(incident: Incident) -> None:
    """Enqueues the mail of an incident that opened or closed, to be sent once this commits."""
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
    """Sends the mail of an incident that opened or closed.

    It goes to those who manage the organization; without an `organization_id` to staff. Nothing is
    sent where there is no such incident in this organization. A mail that is sent again has the
    same Message-ID, so that mail programs show it once.
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
    history = "\n".join(
        f"{update['at']}  {unlinked(update['text'])}" for update in incident.updates
    )
    url = config().web.public_url
    page = "staff" if incident.kind in OF_STAFF else "incidents"
    title = unlinked(incident.title)
    text = TEXT.format(title=title, story=history, link=f"{url}/{page}")
    over = state == IncidentState.CLOSED.value
    domain = url.split("://")[-1].split("/")[0].split(":")[0]
    headers = {"Message-ID": f"<{incident.pk}.{state}.{len(incident.updates)}@{domain}>"}
    subject = f"Over: {title}" if over else title
    EmailMessage(subject, text, to=addresses, headers=headers).send()

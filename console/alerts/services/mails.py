"""Writes the mails of alerts: one when an alert fires, one when it is over."""

from __future__ import annotations

from django.core.mail import EmailMessage

from console.alerts.choices import UNITS, AlertKind, AlertState
from console.alerts.models import Alert
from console.base.accounts.models import Membership
from console.base.accounts.services import managing_addresses
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope

TASK = "alerts.send_alert_mail"
TEXT = """\
{what}: {value}
Threshold: {threshold}, for {minutes}
Cluster: {cluster}

{consequence}

{link}
"""
CONSEQUENCES = {
    AlertState.FIRING.value: "You get another mail once it is back below the threshold.",
    AlertState.OK.value: "It is back below the threshold.",
}


def enqueue_mail(alert: Alert) -> None:
    """Enqueues the mail of an alert that fired or ended, to be sent after the commit."""
    enqueue_task(
        task=TASK,
        organization_id=alert.organization_id,
        arguments={
            "organization_id": alert.organization_id,
            "alert_id": alert.pk,
            "state": alert.state,
            "value": "" if alert.value is None else str(alert.value),
            "subject": alert.subject,
        },
    )


def send_alert_mail(
    *, organization_id: str, alert_id: str, state: str, value: str, subject: str
) -> None:
    """Sends the mail of an alert that fired or ended, with the figure of that moment.

    Sends nothing where the alert was removed meanwhile. A mail that is sent again has the same
    Message-ID, so that mail programs show it once.
    """
    with organization_scope(organization_id):
        rows = Alert.objects.filter(organization_id=organization_id, pk=alert_id)
        alert = rows.select_related("cluster").first()
        if alert is None:
            return
        addresses = _recipients_of(alert)
    if not addresses:
        return
    unit, url = UNITS[alert.kind], config().web.public_url
    what = AlertKind(alert.kind).label
    text = TEXT.format(
        what=f"{what} ({subject})" if subject else what,
        value=f"{value or 'unknown'} {unit}",
        threshold=f"{alert.threshold} {unit}",
        minutes=f"{alert.for_s} seconds",
        cluster=alert.cluster.name,
        consequence=CONSEQUENCES[state],
        link=f"{url}/alerts?panel={alert.pk}",
    )
    over = state == AlertState.OK.value
    domain = url.split("://")[-1].split("/")[0].split(":")[0]
    moment = int(alert.changed_at.timestamp() * 1000)
    headers = {"Message-ID": f"<{alert.pk}.{state}.{moment}@{domain}>"}
    line = f"{'Over' if over else 'Alert'}: {alert.name}"
    EmailMessage(line, text, to=addresses, headers=headers).send()


def _recipients_of(alert: Alert) -> list[str]:
    """Returns the addresses of an alert that still belong to active members.

    An alert that names nobody goes to those who manage the organization. The caller is in the
    organization's tenancy scope.
    """
    if not alert.emails:
        return managing_addresses(organization_id=alert.organization_id)
    members = Membership.objects.for_organization(alert.organization_id)
    named = members.filter(user__email__in=alert.emails, user__is_active=True)
    return sorted(named.values_list("user__email", flat=True).distinct())

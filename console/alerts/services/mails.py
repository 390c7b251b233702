"""Writes the mails of alerts: one when an alert fires, one when it is over."""

from __future__ import annotations

from datetime import UTC, datetime

from django.core.mail import EmailMessage

from console.alerts.choices import SUBJECTS, UNITS, AlertKind, AlertState
from console.alerts.models import Alert
from console.base.accounts.models import Membership
from console.base.accounts.services import managing_addresses
from console.base.common.conf import config
from console.base.common.mail_names import unlinked
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope

TASK = "alerts.send_alert_mail"
CONSEQUENCES = {
    AlertState.FIRING.value: "You get another mail once it is back below the threshold.",
    AlertState.OK.value: "It is back below the threshold.",
}
# How much of a group's or topic's name is in the mail's subject; all of it is in the text.
SUBJECT_CHARS_SHOWN = 60


def enqueue_mail(alert: Alert) -> None:
    """Enqueues the mail of an alert that fired or ended, to be sent after the commit."""
    over = alert.state == AlertState.OK.value
    enqueue_task(
        task=TASK,
        organization_id=alert.organization_id,
        arguments={
            "organization_id": alert.organization_id,
            "alert_id": alert.pk,
            "state": alert.state,
            "value": "" if alert.value is None else str(alert.value),
            "subject": alert.subject,
            "fired_subject": alert.fired_subject,
            "since": _moment(alert.beyond_since),
            "until": _moment(alert.changed_at) if over else "",
        },
    )


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
    """Sends the mail of an alert that fired or ended, with the figure of that moment.

    `subject` is the group or topic of that figure, `fired_subject` that of the figure that made it
    fire. `since` and `until` say when the figure was beyond the threshold; a task of an earlier
    release names neither. Sends nothing where the alert was removed meanwhile. A mail that is sent
    again has the same Message-ID, so that mail programs show it once.
    """
    with organization_scope(organization_id):
        rows = Alert.objects.filter(organization_id=organization_id, pk=alert_id)
        alert = rows.select_related("cluster").first()
        if alert is None:
            return
        addresses = _recipients_of(alert)
    if not addresses:
        return
    url = config().web.public_url
    subject, fired_subject = unlinked(subject), unlinked(fired_subject or subject)
    name = unlinked(alert.name)
    lines = _lines(alert, value, subject, fired_subject)
    if since:
        lines.append(f"Above it: {since} to {until}" if until else f"Above it since: {since}")
    text = "\n".join(
        [*lines, "", CONSEQUENCES[state], "", f"{url}/alerts?panel={alert.pk}", ""],
    )
    over = state == AlertState.OK.value
    domain = url.split("://")[-1].split("/")[0].split(":")[0]
    moment = int(alert.changed_at.timestamp() * 1000)
    headers = {"Message-ID": f"<{alert.pk}.{state}.{moment}@{domain}>"}
    line = f"{'Over' if over else 'Alert'}: {name}"
    if fired_subject and fired_subject not in name:
        cut = fired_subject[:SUBJECT_CHARS_SHOWN]
        line += f" ({cut}…)" if cut != fired_subject else f" ({cut})"
    EmailMessage(line, text, to=addresses, headers=headers).send()


def _lines(alert: Alert, value: str, subject: str, fired_subject: str) -> list[str]:
    """Returns the facts of a mail: the figure, whose it was, the threshold and the cluster."""
    unit = UNITS[alert.kind]
    figure = f"{AlertKind(alert.kind).label}: {value or 'unknown'} {unit}"
    if subject and subject != fired_subject:
        figure += f" ({subject})"
    named = fired_subject and alert.kind in SUBJECTS
    whose = [f"{SUBJECTS[alert.kind]}: {fired_subject}"] if named else []
    return [
        figure,
        *whose,
        f"Cluster: {unlinked(alert.cluster.name)}",
        f"Threshold: {alert.threshold} {unit}, for {alert.for_s} seconds",
    ]


def _moment(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


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

"""Alerts are created, changed and removed here, as people ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.alerts.choices import OF_GROUPS, AlertState
from console.alerts.models import Alert
from console.base.accounts.models import Membership
from console.base.common import locks
from console.base.common.actor import Actor, Permission, require_permission
from console.base.common.audit import changes_of, record_audit
from console.base.common.clock import now
from console.base.common.errors import FieldError, ValidationFailed
from console.base.limits.services import require_room
from provisioning.models import Cluster

SETTINGS = ("name", "group", "threshold", "for_s", "emails")


def create_alert(  # noqa: PLR0913 (what an alert consists of)
    *,
    actor: Actor,
    cluster_id: str,
    name: str,
    kind: str,
    threshold: int,
    for_s: int,
    group: str = "",
    emails: list[str] | None = None,
) -> Alert:
    """Creates an alert of a cluster.

    Raises `ValidationFailed` where a value is wrong or the actor may not read the cluster,
    `PermissionDenied` where the actor may not write in the cluster's project, and `LimitReached`
    where the organization has as many alerts as it may.
    """
    cluster = Cluster.objects.readable(actor).active().filter(pk=cluster_id).first()
    if cluster is None:
        raise _invalid_field("cluster_id", "There is no such cluster.")
    require_permission(actor, Permission.WRITE, cluster.project_id)
    _check_group(kind, group)
    locks.lock("alerts", actor.organization_id)
    used = alerts_used(actor.organization_id)
    require_room("alerts", organization_id=actor.organization_id, used=used)
    alert = Alert.objects.create(
        organization_id=actor.organization_id,
        cluster=cluster,
        name=name,
        kind=kind,
        group=group,
        threshold=threshold,
        for_s=for_s,
        emails=_of_members(actor.organization_id, emails or []),
    )
    detail = {name: getattr(alert, name) for name in ("cluster_id", "kind", *SETTINGS)}
    _audit_change(actor, alert, "create", detail)
    return alert


def update_alert(*, actor: Actor, alert: Alert, changes: Mapping[str, Any]) -> Alert:
    """Changes an alert. The caller holds a lock on its row. Raises `ValidationFailed`.

    With another threshold or group the alert begins again as OK, since the figures that were read
    so far belonged to another question.
    """
    changed = {name: value for name, value in changes.items() if getattr(alert, name) != value}
    if not changed:
        return alert
    if "group" in changed:
        _check_group(alert.kind, changed["group"])
    if "emails" in changed:
        changed["emails"] = _of_members(alert.organization_id, changed["emails"])
    detail = changes_of(alert, changed)
    for name, value in changed.items():
        setattr(alert, name, value)
    alert.generation += 1
    if set(changed) & {"group", "threshold"}:
        alert.state, alert.changed_at = AlertState.OK.value, now()
        alert.back_since = None
    alert.save()
    _audit_change(actor, alert, "update", detail)
    return alert


def remove_alert(*, actor: Actor, alert: Alert) -> None:
    """Removes an alert. The caller holds a lock on its row. Nobody gets a mail that it is over."""
    _audit_change(actor, alert, "remove", {"name": alert.name})
    alert.delete()


def alerts_used(organization_id: str, cluster_id: str = "") -> int:
    """Counts the alerts of an organization; the limit is not one of a cluster."""
    return Alert.objects.filter(organization_id=organization_id).count()


def _check_group(kind: str, group: str) -> None:
    if group and kind not in OF_GROUPS:
        raise _invalid_field(
            "group", "Leave the group empty: only an alert of a lag can name a group."
        )


def _of_members(organization_id: str, emails: list[str]) -> list[str]:
    """Returns the addresses sorted and without duplicates.

    Raises `ValidationFailed` where an address is not that of a member of the organization.
    """
    addresses = sorted(set(emails))
    members = Membership.objects.for_organization(organization_id)
    known = set(members.filter(user__email__in=addresses).values_list("user__email", flat=True))
    for place, email in enumerate(emails):
        if email not in known:
            raise _invalid_field(f"emails/{place}", "Mails go to members of the organization only.")
    return addresses


def _invalid_field(field: str, detail: str) -> ValidationFailed:
    return ValidationFailed(detail, errors=[FieldError(f"/{field}", "invalid", detail)])


def _audit_change(actor: Actor, alert: Alert, verb: str, detail: Mapping[str, Any]) -> None:
    record_audit(
        actor=actor,
        action=f"alert.{verb}",
        target_type="alert",
        target_id=alert.pk,
        detail=detail,
    )

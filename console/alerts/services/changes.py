"""Alerts as people set them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.alerts.choices import OF_GROUPS, AlertState
from console.alerts.models import Alert
from console.base.accounts.models import Membership
from console.base.common import locks
from console.base.common.actor import Actor, Permission, require
from console.base.common.audit import record_audit
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
    """Sets a new alert of a cluster. Raises `ValidationFailed`, `PermissionDenied`,
    `LimitReached`.
    """
    cluster = Cluster.objects.readable(actor).active().filter(pk=cluster_id).first()
    if cluster is None:
        raise _invalid("cluster_id", "There is no such cluster.")
    require(actor, Permission.WRITE, cluster.project_id)
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
    _audit(actor, alert, "create", detail)
    return alert


def update_alert(*, actor: Actor, alert: Alert, changes: Mapping[str, Any]) -> Alert:
    """Changes an alert whose row is locked; it is judged anew. Raises `ValidationFailed`."""
    changed = {name: value for name, value in changes.items() if getattr(alert, name) != value}
    if not changed:
        return alert
    if "group" in changed:
        _check_group(alert.kind, changed["group"])
    if "emails" in changed:
        changed["emails"] = _of_members(alert.organization_id, changed["emails"])
    for name, value in changed.items():
        setattr(alert, name, value)
    alert.generation += 1
    if set(changed) & {"group", "threshold"}:
        # What was found spoke of something else.
        alert.state, alert.changed_at = AlertState.OK.value, now()
        alert.contrary_since = None
    alert.save()
    _audit(actor, alert, "update", changed)
    return alert


def remove_alert(*, actor: Actor, alert: Alert) -> None:
    """Ends an alert whose row is locked. Nobody is told that it is over."""
    _audit(actor, alert, "remove", {"name": alert.name})
    alert.delete()


def alerts_used(organization_id: str, cluster_id: str = "") -> int:
    """Alerts. They count for the organisation, not for a cluster."""
    del cluster_id
    return Alert.objects.filter(organization_id=organization_id).count()


def _check_group(kind: str, group: str) -> None:
    if group and kind not in OF_GROUPS:
        raise _invalid("group", "Only alerts of lag are of a group.")


def _of_members(organization_id: str, emails: list[str]) -> list[str]:
    """Sorted, each once. Raises `ValidationFailed` for one that is no member's."""
    wanted = sorted(set(emails))
    members = Membership.objects.for_organization(organization_id)
    known = set(members.filter(user__email__in=wanted).values_list("user__email", flat=True))
    for place, email in enumerate(emails):
        if email not in known:
            raise _invalid(f"emails/{place}", "Mails go to members of the organisation only.")
    return wanted


def _invalid(field: str, detail: str) -> ValidationFailed:
    return ValidationFailed(detail, errors=[FieldError(f"/{field}", "invalid", detail)])


def _audit(actor: Actor, alert: Alert, verb: str, detail: Mapping[str, Any]) -> None:
    record_audit(
        actor=actor,
        action=f"alert.{verb}",
        target_type="alert",
        target_id=alert.pk,
        detail=detail,
    )

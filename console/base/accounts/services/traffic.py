"""Limits of an organization's traffic, set by billing."""

from __future__ import annotations

from typing import Any

from console.base.accounts.choices import TrafficLimitKind, TrafficLimitSource
from console.base.accounts.models import Organization, TrafficLimit
from console.base.accounts.models.organization import REASON_CHARS_MAX
from console.base.accounts.signals import traffic_limit_changed
from console.base.accounts.traffic import LimitInForce, strictest
from console.base.common.actor import system_actor
from console.base.common.audit import change_of, record_audit
from console.base.common.tenancy import organization_scope


def set_traffic_limit(
    *,
    organization_id: str,
    source: TrafficLimitSource,
    kind: TrafficLimitKind | None = None,
    reason: str = "",
    bytes_per_s: int | None = None,
) -> bool:
    """Has an organization's clusters refuse or slow down traffic because of one source.

    None as `kind` removes the source's limit. Of all sources' limits the strictest holds. Commits,
    administration and all but produce and fetch go on. Clients are shown `reason`, so it must say
    who can do what about it; it is cut off behind `REASON_CHARS_MAX` characters. `bytes_per_s` is
    that of `throttle`, for each cluster. Returns whether the source's limit changed. Raises
    `ValueError` for a limit without a reason, and for a throttle without a rate.
    """
    limit = None if kind is None else _checked_limit(kind, reason, bytes_per_s)
    with organization_scope(organization_id):
        # Creating a cluster locks this row too. So a cluster that is being created now is either
        # there before us, and is announced to, or waits for us, and starts with the limit.
        organization = Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
        rows = TrafficLimit.objects.for_organization(organization_id)
        limits = {row.source: row.in_force for row in rows}
        before = limits.pop(source, None)
        if before == limit:
            return False
        if limit is None:
            rows.filter(source=source).delete()
        else:
            limits[source] = limit
            TrafficLimit.objects.update_or_create(
                organization_id=organization_id, source=source, defaults=_columns(limit)
            )
        record_audit(
            actor=system_actor(organization_id),
            action="organization.set_traffic_limit",
            target_type="organization",
            target_id=organization_id,
            detail={"source": source.value, "limit": change_of(_shown(before), _shown(limit))},
        )
        _hold_strictest(organization, limits)
    return True


def _checked_limit(kind: TrafficLimitKind, reason: str, bytes_per_s: int | None) -> LimitInForce:
    if not reason.strip():
        message = "a traffic limit needs a reason"
        raise ValueError(message)
    if (kind == TrafficLimitKind.THROTTLE) != (bytes_per_s is not None and bytes_per_s > 0):
        message = "a throttle, and nothing else, has a rate above 0"
        raise ValueError(message)
    return LimitInForce(kind.value, reason[:REASON_CHARS_MAX], bytes_per_s)


def _hold_strictest(organization: Organization, limits: dict[str, LimitInForce]) -> None:
    """Writes the limit that holds to the organization, and signals where it is another one."""
    held = strictest(limits[source] for source in TrafficLimitSource.values if source in limits)
    if organization.traffic_limit == held:
        return
    columns = _columns(held) if held is not None else dict.fromkeys(COLUMNS)
    for name, value in columns.items():
        setattr(organization, f"traffic_{name}", value)
    organization.save(update_fields=[f"traffic_{name}" for name in columns])
    traffic_limit_changed.send(sender=Organization, organization_id=organization.pk)


COLUMNS = ("kind", "reason", "bytes_per_s")


def _columns(limit: LimitInForce) -> dict[str, Any]:
    return {name: getattr(limit, name) for name in COLUMNS}


def _shown(limit: LimitInForce | None) -> dict[str, Any] | None:
    """A limit as the audit log shows it."""
    if limit is None:
        return None
    return {name: value for name, value in _columns(limit).items() if value is not None}

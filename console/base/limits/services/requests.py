"""Requests to raise a limit: made by an organization, granted or refused by staff, once."""

from __future__ import annotations

from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import change_of, record_audit
from console.base.common.clock import now
from console.base.common.errors import FieldError, ValidationFailed
from console.base.limits.choices import LimitRequestState, LimitScope
from console.base.limits.errors import (
    LimitNotHigher,
    LimitNotRaisable,
    LimitRequestAnswered,
    LimitRequestOpen,
)
from console.base.limits.models import LimitGrant, LimitRequest
from console.base.limits.registry import BY_NAME, Limit
from console.base.limits.services.values import limit_of
from console.base.limits.signals import limit_granted
from console.base.limits.usage import has_cluster


def request_limit(
    *, actor: Actor, limit: str, requested: int, reason: str, cluster_id: str = ""
) -> LimitRequest:
    """Requests a higher value for a limit of the actor's organization, or of one of its clusters.

    Raises `ValidationFailed` for an unknown limit or cluster, `LimitNotRaisable`, `LimitNotHigher`,
    `LimitRequestOpen`.
    """
    definition = _raisable_limit(limit)
    organization_id = actor.organization_id
    _check_cluster(definition, organization_id, cluster_id)
    current = limit_of(limit, organization_id=organization_id, cluster_id=cluster_id)
    if requested <= current:
        detail = f"The limit is {current}."
        raise LimitNotHigher(detail, errors=[FieldError("/wanted", "limit_not_higher", detail)])
    # Of two requests at once the second waits, and sees the first's row.
    locks.lock("limit-requests", organization_id)
    same = LimitRequest.objects.filter(
        organization_id=organization_id, cluster_id=cluster_id, limit=limit
    )
    open_request = same.filter(state=LimitRequestState.OPEN).first()
    if open_request is not None:
        raise LimitRequestOpen(extra={"limit_request_id": open_request.pk})
    request = LimitRequest.objects.create(
        organization_id=organization_id,
        cluster_id=cluster_id,
        limit=limit,
        wanted=requested,
        reason=reason,
    )
    entry = {"limit": limit, "wanted": requested, "cluster_id": cluster_id}
    _audit_request(actor, request, "create", entry)
    return request


def grant_limit(
    *, actor: Actor, request: LimitRequest, value: int | None = None, answer: str = ""
) -> LimitRequest:
    """Grants a request whose row the caller has locked: the requested value, or `value`.

    Runs in the organization's tenancy scope. Raises `LimitRequestAnswered`, and `LimitNotRaisable`
    above what the service supports.
    """
    granted = value or request.wanted
    _check_supported(request.limit, granted)
    # A limit that was removed since it was requested has no value.
    before = (
        limit_of(
            request.limit,
            organization_id=request.organization_id,
            cluster_id=request.cluster_id,
        )
        if request.limit in BY_NAME
        else None
    )
    _close_request(request, LimitRequestState.GRANTED, answer, granted=granted)
    LimitGrant.objects.update_or_create(
        organization_id=request.organization_id,
        limit=request.limit,
        cluster_id=request.cluster_id,
        defaults={"value": granted, "request": request, "granted_at": now()},
    )
    entry: dict[str, object] = {
        "limit": request.limit,
        "cluster_id": request.cluster_id,
        "value": change_of(before, granted),
    }
    _audit_request(actor, request, "grant", entry)
    limit_granted.send(
        sender=LimitGrant,
        organization_id=request.organization_id,
        cluster_id=request.cluster_id,
        name=request.limit,
    )
    return request


def refuse_limit(*, actor: Actor, request: LimitRequest, answer: str) -> LimitRequest:
    """Refuses a request whose row the caller has locked. Raises `LimitRequestAnswered`."""
    _close_request(request, LimitRequestState.REFUSED, answer, granted=None)
    _audit_request(actor, request, "refuse", {"limit": request.limit, "answer": answer})
    return request


def _close_request(
    request: LimitRequest, state: LimitRequestState, answer: str, *, granted: int | None
) -> None:
    if request.state != LimitRequestState.OPEN:
        raise LimitRequestAnswered(f"The request is {request.state}.")
    request.state, request.answer = state, answer
    request.granted, request.answered_at = granted, now()
    request.save(update_fields=["state", "answer", "granted", "answered_at"])


def _raisable_limit(name: str) -> Limit:
    """Returns a limit by name. Raises `ValidationFailed` if unknown, or `LimitNotRaisable`."""
    definition = BY_NAME.get(name)
    if definition is None:
        detail = f"There is no limit {name}."
        raise ValidationFailed(detail, errors=[FieldError("/limit", "unknown_limit", detail)])
    if not definition.raisable:
        detail = definition.unsupported or LimitNotRaisable.title
        raise LimitNotRaisable(detail, errors=[FieldError("/limit", "limit_not_raisable", detail)])
    return definition


def _check_supported(name: str, value: int) -> None:
    """Raises `LimitNotRaisable` for more than the service supports.

    A limit that was removed since it was requested is not checked: nothing enforces it.
    """
    definition = BY_NAME.get(name)
    if definition is not None and value > definition.supported(value):
        detail = definition.unsupported
        raise LimitNotRaisable(detail, errors=[FieldError("/value", "limit_not_raisable", detail)])


def _check_cluster(definition: Limit, organization_id: str, cluster_id: str) -> None:
    """Raises `ValidationFailed` for a cluster that the limit does not take, or that is unknown."""
    if not cluster_id:
        return
    if definition.scope is not LimitScope.CLUSTER:
        detail = "This limit is not one of clusters: leave cluster_id out."
        raise ValidationFailed(detail, errors=[FieldError("/cluster_id", "unexpected", detail)])
    if not has_cluster(organization_id, cluster_id):
        detail = "The organization has no such cluster."
        raise ValidationFailed(detail, errors=[FieldError("/cluster_id", "not_found", detail)])


def _audit_request(
    actor: Actor, request: LimitRequest, verb: str, detail: dict[str, object]
) -> None:
    record_audit(
        actor=actor,
        action=f"limit_request.{verb}",
        target_type="limit_request",
        target_id=request.pk,
        detail=detail,
    )

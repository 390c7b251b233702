"""Requests for more: asked by an organisation, granted or refused by staff, once."""

from __future__ import annotations

from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
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
    *, actor: Actor, limit: str, wanted: int, reason: str, cluster_id: str = ""
) -> LimitRequest:
    """Asks for more. Raises `ValidationFailed`, `LimitNotRaisable`, `LimitNotHigher`,
    `LimitRequestOpen`.
    """
    definition = _known(limit)
    organization_id = actor.organization_id
    _check_cluster(definition, organization_id, cluster_id)
    current = limit_of(limit, organization_id=organization_id, cluster_id=cluster_id)
    if wanted <= current:
        detail = f"The limit is {current}."
        raise LimitNotHigher(detail, errors=[FieldError("/wanted", "limit_not_higher", detail)])
    # Of two requests at once the second sees the first.
    locks.lock("limit-requests", organization_id)
    same = LimitRequest.objects.filter(
        organization_id=organization_id, cluster_id=cluster_id, limit=limit
    )
    found = same.filter(state=LimitRequestState.OPEN).first()
    if found is not None:
        raise LimitRequestOpen(extra={"limit_request_id": found.pk})
    made = LimitRequest.objects.create(
        organization_id=organization_id,
        cluster_id=cluster_id,
        limit=limit,
        wanted=wanted,
        reason=reason,
    )
    _audit(actor, made, "create", {"limit": limit, "wanted": wanted, "cluster_id": cluster_id})
    return made


def grant_limit(
    *, actor: Actor, request: LimitRequest, value: int | None = None, answer: str = ""
) -> LimitRequest:
    """Grants a request whose row is locked, as it was asked or another value.

    In the organisation's tenancy scope. Raises `LimitRequestAnswered`, and `LimitNotRaisable` above
    what the service can do.
    """
    granted = value or request.wanted
    _check_supported(request.limit, granted)
    _answer(request, LimitRequestState.GRANTED, answer, granted=granted)
    LimitGrant.objects.update_or_create(
        organization_id=request.organization_id,
        limit=request.limit,
        cluster_id=request.cluster_id,
        defaults={"value": granted, "request": request, "granted_at": now()},
    )
    _audit(actor, request, "grant", {"limit": request.limit, "granted": granted})
    limit_granted.send(
        sender=LimitGrant,
        organization_id=request.organization_id,
        cluster_id=request.cluster_id,
        name=request.limit,
    )
    return request


def refuse_limit(*, actor: Actor, request: LimitRequest, answer: str) -> LimitRequest:
    """Refuses a request whose row is locked. Raises `LimitRequestAnswered`."""
    _answer(request, LimitRequestState.REFUSED, answer, granted=None)
    _audit(actor, request, "refuse", {"limit": request.limit, "answer": answer})
    return request


def _answer(
    request: LimitRequest, state: LimitRequestState, answer: str, *, granted: int | None
) -> None:
    if request.state != LimitRequestState.OPEN:
        raise LimitRequestAnswered(f"It is {request.state}.")
    request.state, request.answer = state, answer
    request.granted, request.answered_at = granted, now()
    request.save(update_fields=["state", "answer", "granted", "answered_at"])


def _known(name: str) -> Limit:
    definition = BY_NAME.get(name)
    if definition is None:
        detail = f"There is no limit {name}."
        raise ValidationFailed(detail, errors=[FieldError("/limit", "unknown_limit", detail)])
    if not definition.raisable:
        detail = definition.unsupported or LimitNotRaisable.title
        raise LimitNotRaisable(detail, errors=[FieldError("/limit", "limit_not_raisable", detail)])
    return definition


def _check_supported(name: str, value: int) -> None:
    """A limit that there is no more, but that was asked for, bounds nothing."""
    definition = BY_NAME.get(name)
    if definition is not None and value > definition.supported(value):
        detail = definition.unsupported
        raise LimitNotRaisable(detail, errors=[FieldError("/value", "limit_not_raisable", detail)])


def _check_cluster(definition: Limit, organization_id: str, cluster_id: str) -> None:
    if not cluster_id:
        return
    if definition.scope is not LimitScope.CLUSTER:
        detail = "This limit is not one of clusters."
        raise ValidationFailed(detail, errors=[FieldError("/cluster_id", "unexpected", detail)])
    if not has_cluster(organization_id, cluster_id):
        detail = "The organisation has no such cluster."
        raise ValidationFailed(detail, errors=[FieldError("/cluster_id", "not_found", detail)])


def _audit(actor: Actor, request: LimitRequest, verb: str, detail: dict[str, object]) -> None:
    record_audit(
        actor=actor,
        action=f"limit_request.{verb}",
        target_type="limit_request",
        target_id=request.pk,
        detail=detail,
    )

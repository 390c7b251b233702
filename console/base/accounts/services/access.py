"""Whether an actor would still be admitted: streams ask while they stay open."""

from __future__ import annotations

from dataclasses import replace

from console.base.accounts.models import ApiKey, UserSession
from console.base.accounts.services.admission import may_stay
from console.base.accounts.services.authentication import actor_of_key, actor_of_user
from console.base.common.actor import Actor, ActorKind
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope


def renew_actor(actor: Actor) -> Actor | None:
    """Returns the actor as it would authenticate now, or None if it would be refused.

    A stream asks every few seconds, so that it ends within five seconds after its key is revoked,
    its session ends or its user leaves the organization.
    """
    match actor.kind:
        case ActorKind.API_KEY:
            renewed, second_factor = _renew_key(actor), False
        case ActorKind.SESSION:
            renewed, second_factor = _renew_session(actor)
        case _:
            return actor
    if renewed is None or not may_stay(actor=renewed, second_factor=second_factor):
        return None
    return renewed


def _renew_key(actor: Actor) -> Actor | None:
    with organization_scope(actor.organization_id):
        keys = ApiKey.objects.for_organization(actor.organization_id).usable()
        key = keys.select_related("organization", "service_account").filter(pk=actor.id).first()
        return None if key is None else actor_of_key(key, address=actor.address)


def _renew_session(actor: Actor) -> tuple[Actor | None, bool]:
    """Returns the actor, or None, and whether its session showed a second factor."""
    session = (
        UserSession.objects.filter(
            pk=actor.session_id, user=actor.id, user__is_active=True, expires_at__gt=now()
        )
        .select_related("user")
        .first()
    )
    if session is None:
        return None, False
    renewed = actor_of_user(
        user=session.user, organization_id=actor.organization_id, address=actor.address
    )
    if renewed is not None:
        renewed = replace(renewed, session_id=session.pk)
    return renewed, session.second_factor

"""Whether an actor would still be let in: asked again by what stays open after its request."""

from __future__ import annotations

from dataclasses import replace

from console.base.accounts.models import ApiKey, UserSession
from console.base.accounts.services.admission import may_stay
from console.base.accounts.services.authentication import actor_of_key, actor_of_user
from console.base.common.actor import Actor, ActorKind
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope


def renew_actor(actor: Actor) -> Actor | None:
    """The actor as it would authenticate now; None if it would not.

    A stream asks every few seconds, so that a revoked key, an ended session and a member who left
    see nothing more within five.
    """
    match actor.kind:
        case ActorKind.API_KEY:
            again, second_factor = _renew_key(actor), False
        case ActorKind.SESSION:
            again, second_factor = _renew_session(actor)
        case _:
            return actor
    if again is None or not may_stay(actor=again, second_factor=second_factor):
        return None
    return again


def _renew_key(actor: Actor) -> Actor | None:
    with organization_scope(actor.organization_id):
        keys = ApiKey.objects.for_organization(actor.organization_id).usable()
        found = keys.select_related("organization", "service_account").filter(pk=actor.id)
        key = found.first()
        return None if key is None else actor_of_key(key, address=actor.address)


def _renew_session(actor: Actor) -> tuple[Actor | None, bool]:
    session = (
        UserSession.objects.filter(
            pk=actor.session_id, user=actor.id, user__is_active=True, expires_at__gt=now()
        )
        .select_related("user")
        .first()
    )
    if session is None:
        return None, False
    found = actor_of_user(
        user=session.user, organization_id=actor.organization_id, address=actor.address
    )
    again = None if found is None else replace(found, session_id=session.pk)
    return again, session.second_factor

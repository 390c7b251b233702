"""API keys: made and revoked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from console.accounts import keys
from console.accounts.errors import ExpiryInThePast, RoleTooHigh
from console.accounts.models import ApiKey
from console.common import locks
from console.common.actor import GRANTS, Actor, ActorKind, Role
from console.common.audit import record_audit
from console.common.clock import now
from console.common.errors import FieldError
from console.limits.services import require_room


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new API key, and its secret: the only time that it is known."""

    key: ApiKey
    secret: str


def create_api_key(
    *, actor: Actor, name: str, role: str, expires_at: datetime | None = None
) -> CreatedKey:
    """Makes a key of the actor's organisation, with a role that grants no more than the actor's.

    Raises `RoleTooHigh`, `ExpiryInThePast`, `LimitReached`.
    """
    if not GRANTS[Role(role)] <= GRANTS[actor.role]:
        raise RoleTooHigh(errors=[FieldError("/role", "role_too_high", RoleTooHigh.title)])
    if expires_at is not None and expires_at <= now():
        raise ExpiryInThePast(errors=[FieldError("/expires_at", "past", ExpiryInThePast.title)])
    # Two requests at once must not both take the last place.
    locks.lock("api-keys", actor.organization_id)
    used = keys_used(actor.organization_id)
    require_room("api_keys", organization_id=actor.organization_id, used=used)
    key = ApiKey(
        organization_id=actor.organization_id,
        name=name,
        role=role,
        expires_at=expires_at,
        created_by_id=actor.id if actor.kind is ActorKind.SESSION else None,
    )
    secret = keys.new_secret(key.pk)
    key.verifier = secret.verifier
    key.save(force_insert=True)
    record_audit(
        actor=actor,
        action="api_key.create",
        target_type="api_key",
        target_id=key.pk,
        detail={"name": name, "role": role},
    )
    return CreatedKey(key=key, secret=secret.text)


def keys_used(organization_id: str, cluster_id: str = "") -> int:
    """Keys that authenticate; they are the organisation's, not a cluster's."""
    del cluster_id
    return ApiKey.objects.for_organization(organization_id).usable().count()


def revoke_api_key(*, actor: Actor, key: ApiKey) -> None:
    """Ends a key. Repeating it changes nothing."""
    if key.revoked_at is not None:
        return
    key.revoked_at = now()
    key.save(update_fields=["revoked_at"])
    record_audit(actor=actor, action="api_key.revoke", target_type="api_key", target_id=key.pk)

"""Creates, rotates and revokes API keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.base.accounts import keys as secrets
from console.base.accounts.errors import (
    ExpiryInThePast,
    KeyNotActive,
    TwoKeysAlready,
    UnknownServiceAccount,
)
from console.base.accounts.models import ApiKey, ServiceAccount
from console.base.accounts.services.rights import require_rights_of, require_role
from console.base.common import locks
from console.base.common.actor import Actor, Role
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.errors import FieldError, NotAuthenticated, ValidationFailed
from console.base.limits.services import require_room

# Two, so that a rotation can have the old key and the new one for a while.
KEYS_OF_ACCOUNT_MAX = 2


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new API key with its secret, which is known only now."""

    key: ApiKey
    secret: str


def create_api_key(
    *,
    actor: Actor,
    name: str,
    role: str | None = None,
    service_account_id: str | None = None,
    expires_at: datetime | None = None,
) -> CreatedKey:
    """Creates a key of the actor's organization, or of one of its service accounts.

    The key gets `role` (`admin` if None), or with `service_account_id` the rights of that account.
    Raises `RoleTooHigh` if these are more than the actor has, `ExpiryInThePast`, `LimitReached`,
    `TwoKeysAlready`, `UnknownServiceAccount`, `ValidationFailed` for a role beside an account, and
    `NotAuthenticated` as `lock_maker` does.
    """
    lock_maker(actor)
    account = _lock_account(actor, service_account_id, role)
    own_role = "" if account else (role or Role.ADMIN.value)
    if account is None:
        require_role(actor, own_role)
    else:
        require_rights_of(actor, account)
    key = ApiKey(
        organization_id=actor.organization_id,
        service_account=account,
        name=name,
        role=own_role,
        expires_at=expires_at,
        created_by_id=actor.user_id,
        created_by_account_id=actor.service_account_id,
    )
    created = _insert_key(key)
    record_audit(
        actor=actor,
        action="api_key.create",
        target_type="api_key",
        target_id=key.pk,
        detail={"name": name, "service_account_id": account.pk}
        if account
        else {"name": name, "role": own_role},
    )
    return created


def rotate_api_key(
    *, actor: Actor, key: ApiKey, overlap_s: int, expires_at: datetime | None = None
) -> CreatedKey:
    """Creates a key with the rights of `key`, which ends after `overlap_s` seconds.

    The caller has locked the row of `key`. Without `expires_at` the new key's life is as long as
    that of the old one was to be. Raises `RoleTooHigh` for a key with rights that the actor lacks,
    `KeyNotActive` for a revoked or expired one, and what `create_api_key` raises.
    """
    require_rights_of(actor, key)
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now()):
        raise KeyNotActive
    if expires_at is None and key.expires_at is not None:
        expires_at = now() + (key.expires_at - key.created_at)
    ends_at = now() + timedelta(seconds=overlap_s)
    if key.expires_at is None or ends_at < key.expires_at:
        key.expires_at = ends_at
        key.save(update_fields=["expires_at"])
    created = create_api_key(
        actor=actor,
        name=key.name,
        role=key.role or None,
        service_account_id=key.service_account_id,
        expires_at=expires_at,
    )
    record_audit(
        actor=actor,
        action="api_key.rotate",
        target_type="api_key",
        target_id=key.pk,
        detail={"name": key.name, "new_key": created.key.pk, "overlap_s": overlap_s},
    )
    return created


def keys_used(organization_id: str, cluster_id: str = "") -> int:
    """Counts keys that are neither revoked nor expired. `cluster_id` is ignored."""
    return ApiKey.objects.for_organization(organization_id).unexpired().count()


def revoke_api_key(*, actor: Actor, key: ApiKey) -> None:
    """Revokes a key. Repeating it changes nothing. Raises `RoleTooHigh`."""
    require_rights_of(actor, key)
    end_keys(actor=actor, keys=[key])


def end_keys(*, actor: Actor, keys: Iterable[ApiKey]) -> list[str]:
    """Revokes several keys; returns the ids of those that were not revoked before."""
    ended = [key for key in keys if key.revoked_at is None]
    for key in ended:
        key.revoked_at = now()
        key.save(update_fields=["revoked_at"])
        record_audit(
            actor=actor,
            action="api_key.revoke",
            target_type="api_key",
            target_id=key.pk,
            detail={"name": key.name},
        )
    return [key.pk for key in ended]


def lock_maker(actor: Actor) -> None:
    """Locks the row of the service account that acts, if one does, until the transaction ends.

    The account's keys and invitations end with it. The lock has whoever disables or deletes it run
    either before us, so that we refuse here, or after us, so that they find what we made. Raises
    `NotAuthenticated` where the account is disabled or deleted.
    """
    if actor.service_account_id is None:
        return
    accounts = ServiceAccount.objects.for_organization(actor.organization_id).current()
    rows = accounts.select_for_update(no_key=True).filter(disabled=False)
    if not rows.filter(pk=actor.service_account_id).exists():
        raise NotAuthenticated


def _lock_account(
    actor: Actor, service_account_id: str | None, role: str | None
) -> ServiceAccount | None:
    """Returns the service account that a new key is for, with its row locked; None without an id.

    Raises `ValidationFailed` for a role beside an account, and `UnknownServiceAccount`.
    """
    if service_account_id is None:
        return None
    if role is not None:
        detail = "A service account's key has the account's role."
        raise ValidationFailed(errors=[FieldError("/role", "not_allowed", detail)])
    accounts = ServiceAccount.objects.for_organization(actor.organization_id).current()
    # Whoever deletes it runs before us, and we do not find it, or after us, and finds the key.
    account = accounts.select_for_update(no_key=True).filter(pk=service_account_id).first()
    if account is None:
        title = UnknownServiceAccount.title
        raise UnknownServiceAccount(errors=[FieldError("/service_account_id", "unknown", title)])
    return account


def _insert_key(key: ApiKey) -> CreatedKey:
    """Inserts a new key's row, and returns the key with its secret, which is stored nowhere.

    It needs a transaction, and locks the organization's keys until that ends. Raises
    `ExpiryInThePast`, `LimitReached` where the organization has no room for a key, and
    `TwoKeysAlready` where the service account has two keys that still count.
    """
    if key.expires_at is not None and key.expires_at <= now():
        raise ExpiryInThePast(errors=[FieldError("/expires_at", "past", ExpiryInThePast.title)])
    # Two requests at once must not both take the last place.
    locks.lock("api-keys", key.organization_id)
    used = keys_used(key.organization_id)
    require_room("api_keys", organization_id=key.organization_id, used=used)
    if key.service_account is not None:
        active = ApiKey.objects.for_organization(key.organization_id).unexpired()
        if active.filter(service_account=key.service_account).count() >= KEYS_OF_ACCOUNT_MAX:
            raise TwoKeysAlready
    secret = secrets.new_secret(key.pk)
    key.verifier = secret.verifier
    key.save(force_insert=True)
    return CreatedKey(key=key, secret=secret.text)

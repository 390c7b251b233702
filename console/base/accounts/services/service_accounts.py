"""Creates, changes and deletes service accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.base.accounts.models import ServiceAccount
from console.base.accounts.services.api_keys import end_keys
from console.base.accounts.services.made import end_made_by
from console.base.accounts.services.rights import require_rights_of, require_role
from console.base.common import locks
from console.base.common.actor import Actor, Role
from console.base.common.audit import changes_of, record_audit
from console.base.common.clock import now
from console.base.common.names import require_free_name
from console.base.limits.services import require_room


def create_service_account(
    *, actor: Actor, name: str, role: str = Role.MEMBER, description: str = ""
) -> ServiceAccount:
    """Creates a service account, with a role that grants no more than the actor's.

    Raises `RoleTooHigh`, `NameTaken`, `LimitReached`.
    """
    require_role(actor, role)
    locks.lock("service-accounts", actor.organization_id)
    used = service_accounts_used(actor.organization_id)
    require_room("service_accounts", organization_id=actor.organization_id, used=used)
    _require_free_name(actor.organization_id, name)
    account = ServiceAccount.objects.create(
        organization_id=actor.organization_id, name=name, description=description, role=role
    )
    _audit_account(actor, account, "service_account.create", {"name": name, "role": role})
    return account


def update_service_account(
    *, actor: Actor, account: ServiceAccount, changes: Mapping[str, Any]
) -> ServiceAccount:
    """Changes name, description, role or `disabled` of a row that the caller has locked.

    Disabling it revokes the keys and invitations that it made, and enabling it does not bring them
    back. A lesser role ends those of them that grant more. Raises `RoleTooHigh` for an account or a
    role with rights that the actor lacks, and `NameTaken`.
    """
    require_rights_of(actor, account)
    changed = {name: value for name, value in changes.items() if getattr(account, name) != value}
    if not changed:
        return account
    if "role" in changed:
        require_role(actor, changed["role"])
    if "name" in changed:
        locks.lock("service-accounts", account.organization_id)
        _require_free_name(account.organization_id, changed["name"])
    detail = changes_of(account, changed)
    for name, value in changed.items():
        setattr(account, name, value)
    account.generation += 1
    account.save(update_fields=[*changed, "generation"])
    ended = {}
    if changed.get("disabled"):
        ended = _end_made_by(actor, account, None)
    elif "role" in changed:
        ended = _end_made_by(actor, account, Role(changed["role"]))
    _audit_account(actor, account, "service_account.update", {**detail, **ended})
    return account


def delete_service_account(*, actor: Actor, account: ServiceAccount) -> None:
    """Deletes a service account whose row the caller has locked.

    Its keys, its roles in projects, and the keys and invitations that it made end too. Raises
    `RoleTooHigh` for an account with rights that the actor lacks.
    """
    require_rights_of(actor, account)
    own_keys = end_keys(actor=actor, keys=account.api_keys.all())
    ended = _end_made_by(actor, account, None)
    account.role_bindings.all().delete()
    account.deleted_at = now()
    account.save(update_fields=["deleted_at"])
    detail = {"name": account.name, "revoked_keys": own_keys, **ended}
    _audit_account(actor, account, "service_account.delete", detail)


def service_accounts_used(organization_id: str, cluster_id: str = "") -> int:
    """Counts service accounts, disabled ones too. `cluster_id` is ignored."""
    return ServiceAccount.objects.for_organization(organization_id).current().count()


def _end_made_by(actor: Actor, account: ServiceAccount, above: Role | None) -> dict[str, object]:
    """Ends keys and invitations that an account's keys made, or keys that those made.

    Those that grant no more than the role `above` stay, and so do keys of other service accounts,
    as when a member leaves. Returns all their ids for the audit entry.
    """
    ended = end_made_by(actor=actor, maker=account, above=above)
    return {
        "revoked_made_keys": ended.keys,
        "revoked_invitations": ended.invitations,
        "service_account_keys_seen": ended.keys_seen,
    }


def _require_free_name(organization_id: str, name: str) -> None:
    current = ServiceAccount.objects.for_organization(organization_id).current()
    require_free_name(current, name, "A service account of this organization")


def _audit_account(
    actor: Actor, account: ServiceAccount, action: str, detail: Mapping[str, object]
) -> None:
    record_audit(
        actor=actor,
        action=action,
        target_type="service_account",
        target_id=account.pk,
        detail=detail,
    )

"""Service accounts: programs with a role of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.accounts.models import ServiceAccount
from console.accounts.services.api_keys import end_keys, rights_of_account
from console.accounts.services.rights import require_rights, require_role
from console.common import locks
from console.common.actor import Actor, Role
from console.common.audit import record_audit
from console.common.clock import now
from console.common.errors import (
    FieldError,
    NameTaken,
)
from console.limits.services import require_room


def create_service_account(
    *, actor: Actor, name: str, role: str = Role.MEMBER, description: str = ""
) -> ServiceAccount:
    """Makes one, with a role that grants no more than the actor's.

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
    _audit(actor, account, "service_account.create", {"name": name, "role": role})
    return account


def update_service_account(
    *, actor: Actor, account: ServiceAccount, changes: Mapping[str, Any]
) -> ServiceAccount:
    """Changes name, description, role or `disabled` of a row that the caller has locked.

    Whoever manages accounts may disable each of them; its role is changed, and it is enabled
    again, only by who has all of its rights. Raises `RoleTooHigh`, `NameTaken`.
    """
    changed = {name: value for name, value in changes.items() if getattr(account, name) != value}
    if not changed:
        return account
    if "role" in changed or changed.get("disabled") is False:
        require_rights(actor, account.role, rights_of_account(account))
    if "role" in changed:
        require_role(actor, changed["role"])
    if "name" in changed:
        locks.lock("service-accounts", account.organization_id)
        _require_free_name(account.organization_id, changed["name"])
    for name, value in changed.items():
        setattr(account, name, value)
    account.generation += 1
    account.save(update_fields=[*changed, "generation"])
    _audit(actor, account, "service_account.update", changed)
    return account


def delete_service_account(*, actor: Actor, account: ServiceAccount) -> None:
    """Ends one whose row the caller has locked, with its keys and its roles in projects."""
    ended = end_keys(actor=actor, keys=account.api_keys.all())
    account.role_bindings.all().delete()
    account.deleted_at = now()
    account.save(update_fields=["deleted_at"])
    detail = {"name": account.name, "revoked_keys": ended}
    _audit(actor, account, "service_account.delete", detail)


def service_accounts_used(organization_id: str, cluster_id: str = "") -> int:
    """Service accounts, disabled ones too. They are the organisation's, not a cluster's."""
    del cluster_id
    return ServiceAccount.objects.for_organization(organization_id).current().count()


def _require_free_name(organization_id: str, name: str) -> None:
    current = ServiceAccount.objects.for_organization(organization_id).current()
    if current.filter(name=name).exists():
        detail = f"A service account of this organisation is named {name}."
        raise NameTaken(detail, errors=[FieldError("/name", "name_taken", detail)])


def _audit(
    actor: Actor, account: ServiceAccount, action: str, detail: Mapping[str, object]
) -> None:
    record_audit(
        actor=actor,
        action=action,
        target_type="service_account",
        target_id=account.pk,
        detail=detail,
    )

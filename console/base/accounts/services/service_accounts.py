"""Service accounts: programs with a role of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.base.accounts.choices import InvitationState
from console.base.accounts.models import ApiKey, Invitation, ServiceAccount
from console.base.accounts.services.api_keys import end_keys, rights_of_account
from console.base.accounts.services.rights import require_rights, require_role
from console.base.common import locks
from console.base.common.actor import Actor, Role
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.names import require_free_name
from console.base.limits.services import require_room


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
    again, only by who has all of its rights. Disabling it ends for good what it made for others.
    Raises `RoleTooHigh`, `NameTaken`.
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
    ended = _end_what_it_made(actor, account) if changed.get("disabled") else {}
    _audit(actor, account, "service_account.update", {**changed, **ended})
    return account


def delete_service_account(*, actor: Actor, account: ServiceAccount) -> None:
    """Ends one whose row the caller has locked, with its keys, its roles in projects, and the keys
    and invitations that it made for others.
    """
    ended = end_keys(actor=actor, keys=account.api_keys.all())
    made = _end_what_it_made(actor, account)
    account.role_bindings.all().delete()
    account.deleted_at = now()
    account.save(update_fields=["deleted_at"])
    detail = {"name": account.name, "revoked_keys": ended, **made}
    _audit(actor, account, "service_account.delete", detail)


def service_accounts_used(organization_id: str, cluster_id: str = "") -> int:
    """Service accounts, disabled ones too. They are the organisation's, not a cluster's."""
    del cluster_id
    return ServiceAccount.objects.for_organization(organization_id).current().count()


def _end_what_it_made(actor: Actor, account: ServiceAccount) -> dict[str, object]:
    """Ends keys and invitations that it made, or that keys of its making did. Says which.

    Keys of other service accounts stay, as where a member leaves: the audit log names those whose
    secrets it saw.
    """
    keys = ApiKey.objects.for_organization(account.organization_id).unexpired()
    keys = keys.filter(created_by_account=account)
    seen = keys.exclude(service_account=None).exclude(service_account=account).order_by("id")
    sent = Invitation.objects.for_organization(account.organization_id).filter(
        state=InvitationState.PENDING, invited_by_account=account
    )
    invitations = list(sent.order_by("id").values_list("id", flat=True))
    sent.filter(pk__in=invitations).update(state=InvitationState.REVOKED)
    return {
        "revoked_made_keys": end_keys(actor=actor, keys=keys.filter(service_account=None)),
        "revoked_invitations": invitations,
        "service_account_keys_seen": list(seen.values_list("id", flat=True)),
    }


def _require_free_name(organization_id: str, name: str) -> None:
    current = ServiceAccount.objects.for_organization(organization_id).current()
    require_free_name(current, name, "A service account of this organisation")


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

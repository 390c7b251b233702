"""Creates, changes and deletes service accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.base.accounts.choices import InvitationState
from console.base.accounts.models import ApiKey, Invitation, ServiceAccount
from console.base.accounts.services.api_keys import end_keys, rights_of_account
from console.base.accounts.services.rights import require_rights, require_role
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

    Anybody with `manage` may disable an account. Changing its role, or enabling it again, needs all
    of its rights. Disabling it revokes the keys and invitations that it made, and enabling it does
    not bring them back. Raises `RoleTooHigh`, `NameTaken`.
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
    detail = changes_of(account, changed)
    for name, value in changed.items():
        setattr(account, name, value)
    account.generation += 1
    account.save(update_fields=[*changed, "generation"])
    ended = _revoke_made_by(actor, account) if changed.get("disabled") else {}
    _audit_account(actor, account, "service_account.update", {**detail, **ended})
    return account


def delete_service_account(*, actor: Actor, account: ServiceAccount) -> None:
    """Deletes a service account whose row the caller has locked.

    Its keys, its roles in projects, and the keys and invitations that it made end too.
    """
    own_keys = end_keys(actor=actor, keys=account.api_keys.all())
    ended = _revoke_made_by(actor, account)
    account.role_bindings.all().delete()
    account.deleted_at = now()
    account.save(update_fields=["deleted_at"])
    detail = {"name": account.name, "revoked_keys": own_keys, **ended}
    _audit_account(actor, account, "service_account.delete", detail)


def service_accounts_used(organization_id: str, cluster_id: str = "") -> int:
    """Counts service accounts, disabled ones too. `cluster_id` is ignored."""
    return ServiceAccount.objects.for_organization(organization_id).current().count()


def _revoke_made_by(actor: Actor, account: ServiceAccount) -> dict[str, object]:
    """Revokes keys and invitations that an account's keys made, or keys that those made.

    Keys of other service accounts stay, as when a member leaves. Returns, for the audit entry, the
    ids of what was revoked, and of the keys of other accounts whose secrets this one saw.
    """
    keys = ApiKey.objects.for_organization(account.organization_id).unexpired()
    keys = keys.filter(created_by_account=account)
    seen = keys.exclude(service_account=None).exclude(service_account=account).order_by("id")
    invitations = Invitation.objects.for_organization(account.organization_id).filter(
        state=InvitationState.PENDING, invited_by_account=account
    )
    invitation_ids = list(invitations.order_by("id").values_list("id", flat=True))
    invitations.filter(pk__in=invitation_ids).update(state=InvitationState.REVOKED)
    return {
        "revoked_made_keys": end_keys(actor=actor, keys=keys.filter(service_account=None)),
        "revoked_invitations": invitation_ids,
        "service_account_keys_seen": list(seen.values_list("id", flat=True)),
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

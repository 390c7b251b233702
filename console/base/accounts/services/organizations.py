"""Changes of organizations: by their members, and by billing, which suspends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.base.accounts.addresses import is_allowed
from console.base.accounts.choices import AccountStatus
from console.base.accounts.errors import NotVerified, WouldLockOut
from console.base.accounts.models import Membership, Organization, UserSession
from console.base.accounts.signals import account_status_changed
from console.base.common.actor import GRANTS, Actor, ActorKind, Permission, Role, system_actor
from console.base.common.audit import change_of, changes_of, record_audit
from console.base.common.conf import config
from console.base.common.errors import FieldError
from console.base.common.tenancy import organization_scope


def require_verified(*, organization_id: str) -> None:
    """Raises `NotVerified` where none of the organization's owners has proved their address.

    On one machine nobody has to. The caller has entered the organization's tenancy scope.
    """
    organization = Organization.objects.for_organization(organization_id).get()
    if organization.verified_at is None and not config().local:
        raise NotVerified


def update_organization(
    *, actor: Actor, organization: Organization, changes: Mapping[str, Any], force: bool = False
) -> Organization:
    """Changes an organization whose row the caller has locked; returns it as it is afterwards.

    `changes` may have `name`, `allowed_addresses` and `two_factor_required`. Raises `WouldLockOut`
    if the caller could not come in afterwards, unless `force` is set.
    """
    changed = {
        name: value for name, value in changes.items() if getattr(organization, name) != value
    }
    if not changed:
        return organization
    if not force:
        _refuse_lock_out(actor, changed)
    record_audit(
        actor=actor,
        action="organization.update",
        target_type="organization",
        target_id=organization.pk,
        detail=changes_of(organization, changed),
    )
    for name, value in changed.items():
        setattr(organization, name, value)
    organization.generation += 1
    organization.save(update_fields=[*changed, "generation"])
    return organization


def _refuse_lock_out(actor: Actor, changed: Mapping[str, Any]) -> None:
    """Raises `WouldLockOut` if the changes would refuse the actor's address or session."""
    if not is_allowed(changed.get("allowed_addresses", ()), actor.address):
        detail = f"The caller's own address, {actor.address}, is in none of the networks."
        errors = [FieldError("/allowed_addresses", "would_lock_out", detail)]
        raise WouldLockOut(errors=errors)
    if changed.get("two_factor_required") and actor.kind is ActorKind.SESSION:
        session = UserSession.objects.filter(pk=actor.session_id, second_factor=True)
        if not session.exists():
            detail = "The caller's own session showed no second factor."
            errors = [FieldError("/two_factor_required", "would_lock_out", detail)]
            raise WouldLockOut(errors=errors)


def set_account_status(*, organization_id: str, status: AccountStatus, reason: str) -> bool:
    """Suspends an organization or makes it active again; returns whether its status changed."""
    with organization_scope(organization_id):
        rows = Organization.objects.filter(pk=organization_id).exclude(account_status=status)
        before = rows.values_list("account_status", flat=True).first()
        changed = rows.update(account_status=status)
        if changed:
            record_audit(
                actor=system_actor(organization_id),
                action="organization.set_standing",
                target_type="organization",
                target_id=organization_id,
                detail={"standing": change_of(before, status.value), "reason": reason},
            )
            account_status_changed.send(
                sender=Organization, organization_id=organization_id, account_status=status
            )
    return bool(changed)


def billing_addresses(*, organization_id: str) -> list[str]:
    """Returns the e-mail addresses of an organization's members with the billing permission."""
    return _addresses_with(organization_id, Permission.BILLING)


def managing_addresses(*, organization_id: str) -> list[str]:
    """Returns the e-mail addresses of an organization's members with the manage permission."""
    return _addresses_with(organization_id, Permission.MANAGE)


def _addresses_with(organization_id: str, permission: Permission) -> list[str]:
    """Returns the sorted, distinct addresses of active members whose role grants a permission."""
    with organization_scope(organization_id):
        members = Membership.objects.for_organization(organization_id).filter(
            role__in=[role.value for role in Role if permission in GRANTS[role]],
            user__is_active=True,
        )
        return sorted(members.values_list("user__email", flat=True).distinct())

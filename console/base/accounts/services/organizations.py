"""Organisations: what their members change, and the account status that billing gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.base.accounts.addresses import is_allowed
from console.base.accounts.choices import AccountStatus
from console.base.accounts.errors import WouldLockOut
from console.base.accounts.models import Membership, Organization, UserSession
from console.base.accounts.models.organization import REASON_CHARS_MAX
from console.base.accounts.signals import account_status_changed, produce_suspension_changed
from console.base.common.actor import GRANTS, Actor, ActorKind, Permission, Role, system_actor
from console.base.common.audit import record_audit
from console.base.common.errors import FieldError
from console.base.common.tenancy import organization_scope


def update_organization(
    *, actor: Actor, organization: Organization, changes: Mapping[str, Any], force: bool = False
) -> Organization:
    """Changes name, allowed addresses or the second factor's duty of a row that the caller locked.

    Gives the row as it is afterwards. Raises `WouldLockOut`, unless `force` says to go on.
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
        detail={
            name: {"from": getattr(organization, name), "to": value}
            for name, value in changed.items()
        },
    )
    for name, value in changed.items():
        setattr(organization, name, value)
    organization.generation += 1
    organization.save(update_fields=[*changed, "generation"])
    return organization


def _refuse_lock_out(actor: Actor, changed: Mapping[str, Any]) -> None:
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
    """Suspends an organisation or lets it go on; tells whether that changed anything."""
    with organization_scope(organization_id):
        changed = (
            Organization.objects.filter(pk=organization_id)
            .exclude(account_status=status)
            .update(account_status=status)
        )
        if changed:
            record_audit(
                actor=system_actor(organization_id),
                action="organization.set_standing",
                target_type="organization",
                target_id=organization_id,
                detail={"standing": status.value, "reason": reason},
            )
            account_status_changed.send(
                sender=Organization, organization_id=organization_id, account_status=status
            )
    return bool(changed)


def set_produce_suspension(*, organization_id: str, reason: str | None) -> bool:
    """Has an organisation's clusters refuse produce, or with None take records again.

    Everything else goes on: fetching, commits, administration. Clients that produce are shown the
    `reason`, so it says who can do what about it; more than `REASON_CHARS_MAX` are cut off. Tells
    whether that changed anything. Raises `ValueError` for a reason that says nothing.
    """
    if reason is not None and not reason.strip():
        message = "a produce suspension needs a reason"
        raise ValueError(message)
    wanted = None if reason is None else reason[:REASON_CHARS_MAX]
    with organization_scope(organization_id):
        # Whoever makes a cluster at this moment holds the row: it is found, or finds the reason.
        organization = Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
        if organization.produce_suspended_reason == wanted:
            return False
        organization.produce_suspended_reason = wanted
        organization.save(update_fields=["produce_suspended_reason"])
        record_audit(
            actor=system_actor(organization_id),
            action="organization.set_produce_suspension",
            target_type="organization",
            target_id=organization_id,
            detail={"reason": wanted},
        )
        produce_suspension_changed.send(sender=Organization, organization_id=organization_id)
    return True


def billing_addresses(*, organization_id: str) -> list[str]:
    """Addresses of an organisation's members who look after its money, each once."""
    return _addresses(organization_id, Permission.BILLING)


def managing_addresses(*, organization_id: str) -> list[str]:
    """The same of those who manage it."""
    return _addresses(organization_id, Permission.MANAGE)


def _addresses(organization_id: str, permission: Permission) -> list[str]:
    with organization_scope(organization_id):
        members = Membership.objects.for_organization(organization_id).filter(
            role__in=[role.value for role in Role if permission in GRANTS[role]],
            user__is_active=True,
        )
        return sorted(members.values_list("user__email", flat=True).distinct())

"""Changes the roles of members, and removes members."""

from __future__ import annotations

from console.base.accounts.errors import LastOwner
from console.base.accounts.models import Membership
from console.base.accounts.services.made import end_made_by
from console.base.accounts.services.rights import require_rights_of, require_role
from console.base.common import locks
from console.base.common.actor import Actor, ActorKind, Permission, Role, denied
from console.base.common.audit import changes_of, record_audit


def update_member(*, actor: Actor, member: Membership, role: str) -> Membership:
    """Gives a member, whose row the caller has locked, another role.

    Keys that the member made and invitations that they sent end where they grant more than the new
    role does. Raises `RoleTooHigh` for a member or a role with rights that the actor lacks, and
    `LastOwner`.
    """
    require_rights_of(actor, member)
    if member.role == role:
        return member
    require_role(actor, role)
    if member.role == Role.OWNER:
        _require_another_owner(member)
    changed = changes_of(member, {"role": role})
    member.role = role
    member.save(update_fields=["role"])
    detail = {**changed, **_end_grants_above(actor, member, Role(role))}
    _audit_member(actor, member, "member.update", detail)
    return member


def remove_member(*, actor: Actor, member: Membership) -> None:
    """Removes a member, whose row the caller has locked, from the organization.

    Their sessions see nothing of it from the next request on, and open streams end within seconds.
    Their roles in projects, the keys that they made and the invitations that they sent end too.
    Keys of service accounts stay, and the audit log names those whose secrets they saw. Members
    may remove themselves. Raises `PermissionDenied`, `RoleTooHigh`, `LastOwner`.
    """
    # A person's key may not remove them: only their session counts as themselves.
    if actor.kind is not ActorKind.SESSION or actor.id != member.user_id:
        if not actor.may(Permission.MANAGE):
            raise denied(actor, Permission.MANAGE)
        require_rights_of(actor, member)
    if member.role == Role.OWNER:
        _require_another_owner(member)
    detail = {"user_id": member.user_id, **end_grants(actor=actor, member=member)}
    _audit_member(actor, member, "member.delete", detail)
    member.delete()


def end_grants(*, actor: Actor, member: Membership) -> dict[str, object]:
    """Ends all keys and invitations of a member; returns which, for the audit entry."""
    return _end_grants_above(actor, member, None)


def _require_another_owner(member: Membership) -> None:
    """Raises `LastOwner` if no other owner is active.

    The lock has the second of two owners who leave at once see that the first has left.
    """
    locks.lock("owners", member.organization_id)
    owners = Membership.objects.for_organization(member.organization_id).filter(
        role=Role.OWNER, user__is_active=True
    )
    if not owners.exclude(pk=member.pk).exists():
        raise LastOwner


def _end_grants_above(actor: Actor, member: Membership, role: Role | None) -> dict[str, object]:
    """Ends a member's keys and invitations that grant more than `role`; with None, all of them.

    Keys of service accounts that the member made stay, and the member has seen their secrets.
    Returns all their ids for the audit entry.
    """
    ended = end_made_by(actor=actor, maker=member, above=role)
    return {
        "revoked_keys": ended.keys,
        "revoked_invitations": ended.invitations,
        "service_account_keys_seen": ended.keys_seen,
    }


def _audit_member(actor: Actor, member: Membership, action: str, detail: dict[str, object]) -> None:
    record_audit(
        actor=actor, action=action, target_type="member", target_id=member.pk, detail=detail
    )

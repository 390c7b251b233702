"""Changes the roles of members, and removes members."""

from __future__ import annotations

from console.base.accounts.choices import InvitationState
from console.base.accounts.errors import LastOwner, RoleTooHigh
from console.base.accounts.models import ApiKey, Invitation, Membership
from console.base.accounts.services.api_keys import end_keys
from console.base.accounts.services.rights import require_role
from console.base.common import locks
from console.base.common.actor import GRANTS, Actor, ActorKind, Permission, Role, denied
from console.base.common.audit import changes_of, record_audit


def update_member(*, actor: Actor, member: Membership, role: str) -> Membership:
    """Gives a member, whose row the caller has locked, another role.

    Keys that the member made and invitations that they sent end where they grant more than the new
    role does. Raises `RoleTooHigh` if the new role or the current one is above the actor's, and
    `LastOwner`.
    """
    if member.role == role:
        return member
    require_role(actor, member.role)
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
        if not actor.has_all_of(Role(member.role)):
            raise RoleTooHigh
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

    Returns, for the audit entry, the ids of the revoked keys and invitations, and of the service
    accounts' keys that the member made: these stay, and the member has seen their secrets.
    """
    allowed = frozenset[Permission]() if role is None else GRANTS[role]
    keys = ApiKey.objects.for_organization(member.organization_id).unexpired()
    keys = keys.filter(created_by=member.user_id)
    own_keys = [
        key for key in keys.filter(service_account=None) if not _grants_within(key.role, allowed)
    ]
    seen_ids = keys.exclude(service_account=None).order_by("id").values_list("id", flat=True)
    invitations = Invitation.objects.for_organization(member.organization_id).filter(
        state=InvitationState.PENDING, invited_by=member.user_id
    )
    exceeding = [
        invitation.pk
        for invitation in invitations
        if not all(
            _grants_within(role, allowed)
            for role in (invitation.role, *_roles_in_projects(invitation))
        )
    ]
    invitations.filter(pk__in=exceeding).update(state=InvitationState.REVOKED)
    return {
        "revoked_keys": end_keys(actor=actor, keys=own_keys),
        "revoked_invitations": exceeding,
        "service_account_keys_seen": list(seen_ids),
    }


def _roles_in_projects(invitation: Invitation) -> list[str]:
    return [role["role"] for role in invitation.project_roles]


def _grants_within(role: str, allowed: frozenset[Permission]) -> bool:
    """Returns whether a role grants nothing but `allowed`; nothing is within an empty set."""
    return bool(allowed) and GRANTS[Role(role)] <= allowed


def _audit_member(actor: Actor, member: Membership, action: str, detail: dict[str, object]) -> None:
    record_audit(
        actor=actor, action=action, target_type="member", target_id=member.pk, detail=detail
    )

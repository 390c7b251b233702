"""Members: which role each has, and who belongs no longer."""

from __future__ import annotations

from console.base.accounts.choices import InvitationState
from console.base.accounts.errors import LastOwner, RoleTooHigh
from console.base.accounts.models import ApiKey, Invitation, Membership
from console.base.accounts.services.api_keys import end_keys
from console.base.accounts.services.rights import require_role
from console.base.common import locks
from console.base.common.actor import GRANTS, Actor, ActorKind, Permission, Role, denied
from console.base.common.audit import record_audit


def update_member(*, actor: Actor, member: Membership, role: str) -> Membership:
    """Gives a member, whose row the caller has locked, another role.

    Keys that the member made and invitations that they sent end where they grant more than the new
    role does. Raises `RoleTooHigh` (the new role or the present one is above the actor's own) and
    `LastOwner`.
    """
    if member.role == role:
        return member
    require_role(actor, member.role)
    require_role(actor, role)
    if member.role == Role.OWNER:
        _require_another_owner(member)
    before, member.role = member.role, role
    member.save(update_fields=["role"])
    detail = {"role": {"from": before, "to": role}, **_end_what_exceeds(actor, member, Role(role))}
    _audit(actor, member, "member.update", detail)
    return member


def remove_member(*, actor: Actor, member: Membership) -> None:
    """Has a member, whose row the caller has locked, belong to the organisation no longer.

    Their sessions end here at once, with what they opened within seconds; their roles in projects,
    the keys that they made and the invitations that they sent go with them. Keys of service
    accounts stay: the audit log names those whose secrets they saw. Members may leave by
    themselves. Raises `PermissionDenied`, `RoleTooHigh`, `LastOwner`.
    """
    # Somebody's key is not them: it does not have them leave.
    if actor.kind is not ActorKind.SESSION or actor.id != member.user_id:
        if not actor.may(Permission.MANAGE):
            raise denied(actor, Permission.MANAGE)
        if not actor.has_all_of(Role(member.role)):
            raise RoleTooHigh
    if member.role == Role.OWNER:
        _require_another_owner(member)
    detail = {"user_id": member.user_id, **_end_what_exceeds(actor, member, None)}
    _audit(actor, member, "member.delete", detail)
    member.delete()


def _require_another_owner(member: Membership) -> None:
    """Raises `LastOwner`. Of two owners who go at once the second sees that the first has gone."""
    locks.lock("owners", member.organization_id)
    owners = Membership.objects.for_organization(member.organization_id).filter(
        role=Role.OWNER, user__is_active=True
    )
    if not owners.exclude(pk=member.pk).exists():
        raise LastOwner


def _end_what_exceeds(actor: Actor, member: Membership, role: Role | None) -> dict[str, object]:
    """Ends what a member made that grants more than a role; without one, all of it. Says what."""
    allowed = frozenset[Permission]() if role is None else GRANTS[role]
    made = ApiKey.objects.for_organization(member.organization_id).unexpired()
    made = made.filter(created_by=member.user_id)
    own = [key for key in made.filter(service_account=None) if not _fits(key.role, allowed)]
    seen = made.exclude(service_account=None).order_by("id").values_list("id", flat=True)
    sent = Invitation.objects.for_organization(member.organization_id).filter(
        state=InvitationState.PENDING, invited_by=member.user_id
    )
    exceeding = [
        each.pk
        for each in sent
        if not all(_fits(role, allowed) for role in (each.role, *_roles_in_projects(each)))
    ]
    sent.filter(pk__in=exceeding).update(state=InvitationState.REVOKED)
    return {
        "revoked_keys": end_keys(actor=actor, keys=own),
        "revoked_invitations": exceeding,
        "service_account_keys_seen": list(seen),
    }


def _roles_in_projects(invitation: Invitation) -> list[str]:
    return [role["role"] for role in invitation.project_roles]


def _fits(role: str, allowed: frozenset[Permission]) -> bool:
    return bool(allowed) and GRANTS[Role(role)] <= allowed


def _audit(actor: Actor, member: Membership, action: str, detail: dict[str, object]) -> None:
    record_audit(
        actor=actor, action=action, target_type="member", target_id=member.pk, detail=detail
    )

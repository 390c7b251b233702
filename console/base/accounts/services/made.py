"""Ends the API keys and the invitations that a member or a service account made."""

from __future__ import annotations

from dataclasses import dataclass

from console.base.accounts.choices import InvitationState
from console.base.accounts.models import ApiKey, Invitation, Membership, ServiceAccount
from console.base.accounts.services.api_keys import end_keys
from console.base.common.actor import GRANTS, Actor, Permission, Role


@dataclass(frozen=True, slots=True)
class Ended:
    """The ids of what ended, for the audit entry.

    `keys_seen` stay: they are keys of other service accounts, and the maker saw their secrets.
    """

    keys: list[str]
    invitations: list[str]
    keys_seen: list[str]


def end_made_by(*, actor: Actor, maker: Membership | ServiceAccount, above: Role | None) -> Ended:
    """Ends what grants more than the role `above`; with None, all that the maker made."""
    allowed = frozenset[Permission]() if above is None else GRANTS[above]
    keys = ApiKey.objects.for_organization(maker.organization_id).unexpired()
    invitations = Invitation.objects.for_organization(maker.organization_id).filter(
        state=InvitationState.PENDING
    )
    if isinstance(maker, ServiceAccount):
        keys = keys.filter(created_by_account=maker)
        seen = keys.exclude(service_account=None).exclude(service_account=maker)
        invitations = invitations.filter(invited_by_account=maker)
    else:
        keys = keys.filter(created_by=maker.user_id)
        seen = keys.exclude(service_account=None)
        invitations = invitations.filter(invited_by=maker.user_id)
    own = [key for key in keys.filter(service_account=None) if not _is_within(key.role, allowed)]
    exceeding = [
        invitation.pk
        for invitation in invitations.order_by("id")
        if not all(_is_within(role, allowed) for role in _roles_of(invitation))
    ]
    invitations.filter(pk__in=exceeding).update(state=InvitationState.REVOKED)
    return Ended(
        keys=end_keys(actor=actor, keys=own),
        invitations=exceeding,
        keys_seen=list(seen.order_by("id").values_list("id", flat=True)),
    )


def _roles_of(invitation: Invitation) -> list[str]:
    return [invitation.role, *(role["role"] for role in invitation.project_roles)]


def _is_within(role: str, allowed: frozenset[Permission]) -> bool:
    """Returns whether a role grants nothing but `allowed`; nothing is within an empty set."""
    return bool(allowed) and GRANTS[Role(role)] <= allowed

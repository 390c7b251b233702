"""What the proof of an address changes: an address counts only when its owner has proved it.

Anybody can sign up with any address. Who reads its mail proves it: by the link of the sign-up's
mail together with the session or the password of the sign-up (`verification.py`), by an invitation
that the account accepts, or by setting a new password by mail. The last one shows that the mail is
read, not that its reader signed up. So it takes the account over: what somebody else could use
ends (decision 0021).
"""

from __future__ import annotations

from console.base.accounts.choices import InvitationState
from console.base.accounts.models import ApiKey, Invitation, Membership, Organization, User
from console.base.accounts.services.api_keys import end_keys
from console.base.accounts.services.factors import delete_factor
from console.base.accounts.services.members import end_grants
from console.base.accounts.services.memberships import organizations_of
from console.base.accounts.services.people import notify_person
from console.base.accounts.services.sessions import end_sessions
from console.base.accounts.signals import organization_taken_over, organization_verified
from console.base.common.actor import Actor, ActorKind, Role, system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope


def mark_proved(user: User) -> None:
    """Writes down that the user's address is proved. Repeating it changes nothing.

    The organizations that the user owns count as verified from then on, and may get public
    endpoints.
    """
    if user.email_verified_at is None:
        user.email_verified_at = now()
        user.save(update_fields=["email_verified_at"])
    for membership in organizations_of(user):
        if membership.role == Role.OWNER and membership.organization.verified_at is None:
            _verify_organization(membership.organization_id)


def take_over(*, user: User, address: str) -> None:
    """Gives an account, whose row the caller has locked, to who has just proved its address.

    Sessions, second factor, API keys and invitations of whoever signed up end. In organizations
    that nobody else owns by a proved address, every key, Kafka credential, invitation and other
    member goes, and what could lock the owner out is lifted. The caller sets the password.
    """
    end_sessions(user=user, but_for=None, address=address)
    delete_factor(user)
    for membership in organizations_of(user):
        actor = Actor(
            kind=ActorKind.SESSION,
            id=user.pk,
            organization_id=membership.organization_id,
            role=Role(membership.role),
            address=address,
            user_id=user.pk,
        )
        with organization_scope(membership.organization_id):
            if membership.role == Role.OWNER and not _has_proved_owner(membership):
                detail = _end_everything(actor, membership)
            else:
                detail = end_grants(actor=actor, member=membership)
            record_audit(
                actor=actor,
                action="user.take_over",
                target_type="user",
                target_id=user.pk,
                detail=detail,
            )
    mark_proved(user)
    notify_person(user=user, about="account_taken_over")


def _has_proved_owner(membership: Membership) -> bool:
    """Returns whether somebody else owns the membership's organization by a proved address."""
    owners = Membership.objects.for_organization(membership.organization_id).filter(
        role=Role.OWNER, user__is_active=True
    )
    others = owners.exclude(pk=membership.pk)
    return others.exclude(user__email_verified_at=None).exists()


def _end_everything(actor: Actor, membership: Membership) -> dict[str, object]:
    """Ends all access to an organization but that of `membership`; returns what, to be audited."""
    organization_id = membership.organization_id
    # Creating a cluster locks this row too: it is there before us, or made by nobody any more.
    organization = Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
    keys = ApiKey.objects.for_organization(organization_id).unexpired()
    invitations = Invitation.objects.for_organization(organization_id).filter(
        state=InvitationState.PENDING
    )
    invitation_ids = list(invitations.order_by("id").values_list("id", flat=True))
    invitations.update(state=InvitationState.REVOKED)
    others = Membership.objects.for_organization(organization_id).exclude(pk=membership.pk)
    other_users = list(others.order_by("id").values_list("user_id", flat=True))
    others.delete()
    organization.allowed_addresses = []
    organization.two_factor_required = False
    organization.generation += 1
    organization.save(update_fields=["allowed_addresses", "two_factor_required", "generation"])
    organization_taken_over.send(sender=Organization, organization_id=organization_id)
    return {
        "revoked_keys": end_keys(actor=actor, keys=keys),
        "revoked_invitations": invitation_ids,
        "removed_members": other_users,
    }


def _verify_organization(organization_id: str) -> None:
    with organization_scope(organization_id):
        Organization.objects.filter(pk=organization_id).update(verified_at=now())
        record_audit(
            actor=system_actor(organization_id),
            action="organization.verify",
            target_type="organization",
            target_id=organization_id,
        )
        organization_verified.send(sender=Organization, organization_id=organization_id)

"""Invitations: created, sent again, revoked, and accepted once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.core.mail import EmailMessage

from console.base.accounts.choices import InvitationState
from console.base.accounts.errors import (
    AccountExists,
    AlreadyInvited,
    AlreadyMember,
    InvitationClosed,
    InvitationExpired,
    InvitationInvalid,
    InvitedAnother,
    PasswordRequired,
)
from console.base.accounts.invitation_tokens import digest_of, token_of
from console.base.accounts.models import Invitation, Membership, Organization, User
from console.base.accounts.models.user import normal_email
from console.base.accounts.services.api_keys import lock_maker
from console.base.accounts.services.hashing import hash_password
from console.base.accounts.services.organizations import require_verified
from console.base.accounts.services.passwords import check_password, set_password
from console.base.accounts.services.proving import mark_proved, take_over
from console.base.accounts.services.rights import require_rights_of, require_role
from console.base.accounts.services.role_bindings import (
    ProjectRole,
    bind_invited,
    check_project_roles,
)
from console.base.common import locks
from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.errors import FieldError, TooManyRequests
from console.base.common.ids import random_text
from console.base.common.mail_names import quoted_name
from console.base.common.models import AuditEntry
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope, system_scope
from console.base.limits.services import require_room

VALID = timedelta(days=7)
# The least time between two mails of one invitation.
RESEND_AFTER = timedelta(minutes=1)
DAY = timedelta(days=1)
NONCE_CHARS = 20
RESENT = "invitation.resend"
TASK = "accounts.send_invitation"
SUBJECT = "You are invited to an organization on Freshet"
TEXT = """\
{inviter} invites you to join the organization {organization} on Freshet, as {role}.

Open this link to accept; it is good until {until} (UTC), and once:

{link}

If you do not know what this is about, there is nothing to do.
"""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The membership that accepting made.

    `new_user` says whether the account became this person's by accepting.
    """

    organization: Organization
    member: Membership
    new_user: bool


def create_invitation(
    *,
    actor: Actor,
    email: str,
    role: str,
    project_roles: Sequence[ProjectRole] = (),
) -> Invitation:
    """Invites an address, with a role and roles in projects that grant no more than the actor's.

    Raises `RoleTooHigh`, `UnknownProject`, `NotVerified`, `AlreadyMember`, `AlreadyInvited`,
    `LimitReached`, and what `check_project_roles` and `lock_maker` raise.
    """
    lock_maker(actor)
    require_role(actor, role)
    check_project_roles(actor=actor, project_roles=project_roles)
    email = normal_email(email)
    # Nobody has us mail invitations before they proved to own an address.
    require_verified(organization_id=actor.organization_id)
    locks.lock("members", actor.organization_id)
    members = Membership.objects.for_organization(actor.organization_id)
    if members.filter(user__email=email).exists():
        raise AlreadyMember(errors=[FieldError("/email", "already_member", AlreadyMember.title)])
    ours = Invitation.objects.for_organization(actor.organization_id)
    if ours.open().filter(email=email).exists():
        raise AlreadyInvited(errors=[FieldError("/email", "already_invited", AlreadyInvited.title)])
    organization_id = actor.organization_id
    require_room("members", organization_id=organization_id, used=members_used(organization_id))
    today = invitations_used(organization_id)
    require_room("invitations_per_day", organization_id=organization_id, used=today)
    # An expired one still is `pending`, and a constraint allows one pending invitation an address.
    ours.filter(email=email, state=InvitationState.PENDING).update(state=InvitationState.EXPIRED)
    invitation = Invitation(
        organization_id=actor.organization_id,
        email=email,
        role=role,
        project_roles=list(project_roles),
        invited_by_id=actor.user_id,
        invited_by_account_id=actor.service_account_id,
        expires_at=now() + VALID,
    )
    _renew_token(invitation)
    invitation.save(force_insert=True)
    _enqueue_mail(invitation)
    detail = {"email": email, "role": role, "project_roles": invitation.project_roles}
    _audit_invitation(actor, invitation, "invitation.create", detail)
    return invitation


def resend_invitation(*, actor: Actor, invitation: Invitation) -> Invitation:
    """Sends the mail of an invitation again, which is then valid for seven days from now.

    The caller has locked its row. Links of earlier mails become invalid. Raises `RoleTooHigh`,
    `InvitationClosed`, `TooManyRequests`, `LimitReached` (`invitations_per_day`).
    """
    lock_maker(actor)
    require_rights_of(actor, invitation)
    if invitation.state != InvitationState.PENDING:
        raise InvitationClosed(f"The invitation is {invitation.state}; create another one.")
    wait = invitation.sent_at + RESEND_AFTER - now()
    if wait > timedelta():
        raise TooManyRequests(
            "The invitation was sent less than a minute ago.",
            retry_after_s=max(1, math.ceil(wait.total_seconds())),
        )
    organization_id = invitation.organization_id
    today = invitations_used(organization_id)
    require_room("invitations_per_day", organization_id=organization_id, used=today)
    _renew_token(invitation)
    invitation.sent_at, invitation.expires_at = now(), now() + VALID
    # Whoever sends it again becomes its inviter: it ends when they leave.
    invitation.invited_by_id = actor.user_id
    invitation.invited_by_account_id = actor.service_account_id
    invitation.save()
    _enqueue_mail(invitation)
    _audit_invitation(actor, invitation, RESENT, {"email": invitation.email})
    return invitation


def revoke_invitation(*, actor: Actor, invitation: Invitation) -> None:
    """Revokes an invitation whose row the caller has locked. Repeating it changes nothing.

    Raises `RoleTooHigh`, and `InvitationClosed` for an accepted one.
    """
    require_rights_of(actor, invitation)
    if invitation.state == InvitationState.ACCEPTED:
        raise InvitationClosed("The invitation is accepted; remove the member instead.")
    if invitation.state != InvitationState.PENDING:
        return
    invitation.state = InvitationState.REVOKED.value
    invitation.save(update_fields=["state"])
    _audit_invitation(actor, invitation, "invitation.revoke", {"email": invitation.email})


def send_invitation(*, organization_id: str, invitation_id: str) -> None:
    """Sends the mail, unless the invitation was accepted or revoked, or has expired meanwhile."""
    with organization_scope(organization_id):
        pending = Invitation.objects.for_organization(organization_id).open()
        invitation = (
            pending.select_related("organization", "invited_by").filter(pk=invitation_id).first()
        )
    if invitation is None:
        return
    token = token_of(invitation.pk, invitation.nonce)
    inviter = invitation.invited_by.email if invitation.invited_by else "An administrator"
    body = TEXT.format(
        inviter=inviter,
        organization=quoted_name(invitation.organization.name),
        role=invitation.role,
        until=f"{invitation.expires_at:%-d %B %Y %H:%M}",
        link=f"{config().web.public_url}/invitation#{token}",
    )
    EmailMessage(SUBJECT, body, to=[invitation.email]).send()


def accept_invitation(
    *,
    token: str,
    user: User | None,
    password: str | None,
    name: str,
    address: str,
) -> Accepted:
    """Makes the invited person a member: the signed-in `user`, or a new account if that is None.

    The token proves the address. So a signed-in user's is proved from then on, and an account that
    somebody else may have made with the address, unproved, is taken over as if it were new.

    Of two requests that accept at once the second finds the invitation accepted. Raises
    `InvitationInvalid`, `InvitationExpired`, `InvitedAnother`, `AlreadyMember`, `LimitReached`; for
    a new account also `AccountExists`, `PasswordRequired`, `TooManyAtOnce`, and `ValidationFailed`
    for a weak password.
    """
    invitation = _open_invitation(token, user, lock=False)
    hashed = "" if user is not None else _hashed(invitation.email, password, address)
    invitation = _open_invitation(token, user, lock=True)
    if user is None:
        joining = _new_user(invitation.email, hashed, name, address)
    else:
        joining = User.objects.select_for_update().get(pk=user.pk)
        mark_proved(joining)
    with organization_scope(invitation.organization_id):
        return _add_member(invitation, joining, new_user=user is None, address=address)


def _open_invitation(token: str, user: User | None, *, lock: bool) -> Invitation:
    """Returns the invitation that a token is of, if `user` may accept it; with `lock`, its row."""
    with system_scope():
        rows = Invitation.objects.select_related("organization")
        if lock:
            rows = rows.select_for_update(of=("self",))
        invitation = rows.filter(token_digest=digest_of(token)).first()
    if invitation is None or invitation.state != InvitationState.PENDING:
        raise InvitationInvalid
    if invitation.organization.closed_at is not None:
        raise InvitationInvalid
    if invitation.expires_at <= now():
        raise InvitationExpired
    if user is not None and user.email != invitation.email:
        raise InvitedAnother
    return invitation


def members_used(organization_id: str, cluster_id: str = "") -> int:
    """Counts members and open invitations. `cluster_id` is ignored."""
    members = Membership.objects.for_organization(organization_id).count()
    return members + Invitation.objects.for_organization(organization_id).open().count()


def invitations_used(organization_id: str, cluster_id: str = "") -> int:
    """Counts mails of invitations in the last 24 hours, repeated ones too.

    `cluster_id` is ignored.
    """
    since = now() - DAY
    ours = Invitation.objects.for_organization(organization_id)
    again = AuditEntry.objects.filter(organization_id=organization_id, action=RESENT)
    return ours.filter(created_at__gt=since).count() + again.filter(created_at__gt=since).count()


def _add_member(invitation: Invitation, user: User, *, new_user: bool, address: str) -> Accepted:
    locks.lock("members", invitation.organization_id)
    members = Membership.objects.for_organization(invitation.organization_id)
    if members.filter(user=user).exists():
        raise AlreadyMember
    require_room("members", organization_id=invitation.organization_id, used=members.count())
    member = Membership.objects.create(
        organization_id=invitation.organization_id, user=user, role=invitation.role
    )
    invitation.state = InvitationState.ACCEPTED.value
    invitation.save(update_fields=["state"])
    actor = Actor(
        kind=ActorKind.SESSION,
        id=user.pk,
        organization_id=invitation.organization_id,
        role=Role(invitation.role),
        address=address,
        user_id=user.pk,
    )
    detail = {"email": invitation.email, "role": invitation.role, "member_id": member.pk}
    _audit_invitation(actor, invitation, "invitation.accept", detail)
    bind_invited(actor=actor, member=member, project_roles=invitation.project_roles)
    return Accepted(organization=invitation.organization, member=member, new_user=new_user)


def _hashed(email: str, password: str | None, address: str) -> str:
    """Returns the hash of a new account's password, before anything is locked."""
    if _proved(email):
        raise AccountExists
    if not password:
        title = PasswordRequired.title
        raise PasswordRequired(errors=[FieldError("/password", "required", title)])
    check_password(password=password, user=User(email=email), pointer="/password")
    return hash_password(password, address=address)


def _proved(email: str) -> bool:
    """Returns whether there is an account of this address that its owner has proved."""
    return User.objects.filter(email=email).exclude(email_verified_at=None).exists()


def _new_user(email: str, hashed: str, name: str, address: str) -> User:
    """Creates the account of an invited address, which is verified: its owner read the mail.

    An account that nobody has proved is taken over instead.
    """
    # As at sign-up: of two requests at once the second waits, and sees the first's account.
    locks.lock("email", email)
    unproved = User.objects.select_for_update().filter(email=email).first()
    if unproved is not None:
        if unproved.email_verified_at is not None or not unproved.is_active:
            raise AccountExists
        unproved.name = name
        unproved.save(update_fields=["name"])
        take_over(user=unproved, address=address)
        set_password(unproved, hashed)
        return unproved
    user = User(email=email, name=name, email_verified_at=now(), password=hashed)
    user.save(force_insert=True)
    return user


def _renew_token(invitation: Invitation) -> None:
    invitation.nonce = random_text(NONCE_CHARS)
    invitation.token_digest = digest_of(token_of(invitation.pk, invitation.nonce))


def _enqueue_mail(invitation: Invitation) -> None:
    enqueue_task(
        task=TASK,
        organization_id=invitation.organization_id,
        arguments={
            "organization_id": invitation.organization_id,
            "invitation_id": invitation.pk,
        },
    )


def _audit_invitation(
    actor: Actor, invitation: Invitation, action: str, detail: Mapping[str, object]
) -> None:
    record_audit(
        actor=actor,
        action=action,
        target_type="invitation",
        target_id=invitation.pk,
        detail=detail,
    )

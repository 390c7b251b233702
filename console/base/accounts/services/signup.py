"""Sign-up: a person, an organization that they own, and its first API key."""

from __future__ import annotations

from dataclasses import dataclass

from console.base.accounts.errors import EmailTaken
from console.base.accounts.models import Membership, Organization, User
from console.base.accounts.models.user import normal_email
from console.base.accounts.services.address_mails import request_signup_notice
from console.base.accounts.services.api_keys import CreatedKey, create_api_key
from console.base.accounts.services.hashing import hash_password
from console.base.accounts.services.limits import check_address, note_address
from console.base.accounts.services.passwords import check_password
from console.base.accounts.services.projects import create_default_project
from console.base.accounts.services.verification import enqueue_verification
from console.base.accounts.signals import organization_signed_up
from console.base.common import locks
from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.audit import record_audit
from console.base.common.conf import config
from console.base.common.errors import FieldError
from console.base.common.tenancy import organization_scope
from console.base.common.transactions import commit_so_far

FIRST_KEY = "First key"


@dataclass(frozen=True, slots=True)
class SignedUp:
    """The rows that a sign-up made, with the secret of the first API key."""

    user: User
    organization: Organization
    api_key: CreatedKey


def sign_up(
    *, email: str, password: str, organization_name: str, address: str, from_console: bool
) -> SignedUp:
    """Creates user, organization, membership and key, and enqueues a mail to verify the address.

    `from_console` asks receivers of the signal for a first cluster too. Raises `TooManyRequests`,
    `TooManyAtOnce`, `ValidationFailed` for a weak password, and `EmailTaken` after it has counted
    the attempt against the network address, and has enqueued a mail to the account's owner.
    """
    check_address(kind="signup", address=address, limit=config().limits.signups_per_address)
    user = User(email=normal_email(email))
    check_password(password=password, user=user, pointer="/password")
    note_address(kind="signup", address=address)
    commit_so_far()
    user.password = hash_password(password, address=address)
    # Of two sign-ups with one address at once the second waits, and sees the first's account.
    locks.lock("email", user.email)
    if User.objects.filter(email=user.email).exists():
        request_signup_notice(email=user.email)
        raise EmailTaken(errors=[FieldError("/email", "email_taken", EmailTaken.title)])
    user.save(force_insert=True)
    organization = Organization(name=organization_name)
    actor = Actor(
        kind=ActorKind.SESSION,
        id=user.pk,
        organization_id=organization.pk,
        role=Role.OWNER,
        address=address,
        user_id=user.pk,
    )
    with organization_scope(organization.pk):
        organization.save(force_insert=True)
        Membership.objects.create(organization=organization, user=user, role=Role.OWNER)
        record_audit(
            actor=actor,
            action="organization.create",
            target_type="organization",
            target_id=organization.pk,
            detail={"name": organization_name},
        )
        create_default_project(actor=actor)
        api_key = create_api_key(actor=actor, name=FIRST_KEY, role=Role.OWNER)
        enqueue_verification(user=user, organization_id=organization.pk)
        organization_signed_up.send(sender=Organization, actor=actor, from_console=from_console)
    return SignedUp(user=user, organization=organization, api_key=api_key)

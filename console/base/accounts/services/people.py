"""Audit entries and mails about a change of a person's account."""

from __future__ import annotations

from collections.abc import Mapping

from django.core.mail import EmailMessage

from console.base.accounts.models import User
from console.base.accounts.services.memberships import organizations_of
from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.audit import record_audit
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import NO_ORGANIZATION, organization_scope

TASK = "accounts.send_security_mail"

SUBJECTS = {
    "password_changed": "Your password was changed",
    "account_taken_over": "Your address is confirmed, and what was there before has ended",
    "second_factor_added": "A second factor was added to your account",
    "second_factor_removed": "The second factor of your account was removed",
    "recovery_code_used": "A recovery code of your account was used",
    "recovery_codes_made": "New recovery codes were made for your account",
    "made_staff": "You are staff of the service now",
    "staff_no_more": "You are not staff of the service any more",
}
TEXTS = {
    "password_changed": "The password of your account was changed, and all other sessions were "
    "ended.",
    "account_taken_over": "You set a password for an account whose address nobody had confirmed. "
    "Somebody else may have signed up with it, so all of these have ended: sessions, the second "
    "factor, API keys, Kafka credentials, invitations and other members. Clusters and their "
    "records are still there; the audit log says what was done before.",
    "second_factor_added": "Signing in to your account now asks for a code of your authenticator "
    "app as well. All other sessions were ended.",
    "second_factor_removed": "Signing in to your account asks for the password alone from now on.",
    "recovery_code_used": "One of your recovery codes was used in place of a code of your "
    "authenticator app. It is used up.",
    "recovery_codes_made": "New recovery codes were made for your account. The older ones have no "
    "effect any more.",
    "made_staff": "Your account now opens the staff area, with what the service runs and what is "
    "owed, after a sign-in with a second factor. All your sessions were ended.",
    "staff_no_more": "Your account does not open the staff area any more. All your sessions were "
    "ended.",
}
FRAME = """\
{text}

If it was you, there is nothing to do. If it was not, set a new password now:

{link}

and then look at the sessions and API keys in the console.
"""


def audit_person(
    *, user: User, action: str, address: str, detail: Mapping[str, object] | None = None
) -> None:
    """Adds an entry to the audit log of every organization that the person is a member of."""
    for membership in organizations_of(user):
        actor = Actor(
            kind=ActorKind.SESSION,
            id=user.pk,
            organization_id=membership.organization_id,
            role=Role(membership.role),
            address=address,
        )
        with organization_scope(membership.organization_id):
            record_audit(
                actor=actor, action=action, target_type="user", target_id=user.pk, detail=detail
            )


def notify_person(*, user: User, about: str) -> None:
    """Enqueues a mail to a person about their account; `about` is a key of `SUBJECTS`.

    A worker sends it once the surrounding transaction has committed.
    """
    enqueue_for_nobody(task=TASK, arguments={"user_id": user.pk, "about": about})


def enqueue_for_nobody(*, task: str, arguments: dict[str, str]) -> None:
    """Enqueues a task about a person or an address, in the scope of no organization."""
    with organization_scope(NO_ORGANIZATION):
        enqueue_task(task=task, organization_id=NO_ORGANIZATION, arguments=arguments)


def send_security_mail(*, user_id: str, about: str) -> None:
    """Sends the mail that `notify_person` enqueued, unless the user was deleted."""
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        return
    link = f"{config().web.public_url}/password-reset"
    body = FRAME.format(text=TEXTS[about], link=link)
    EmailMessage(SUBJECTS[about], body, to=[user.email]).send()

"""Verifies that a person owns the address that they signed up with.

The mail's link carries a signed token that names user and address and expires. No token is stored.
"""

from __future__ import annotations

from datetime import timedelta

from django.core import signing
from django.core.mail import EmailMessage

from console.base.accounts.errors import TokenExpired, TokenInvalid
from console.base.accounts.models import Membership, Organization, User
from console.base.accounts.models.user import normal_email
from console.base.accounts.services.limits import check_address, note_address
from console.base.accounts.signals import organization_verified
from console.base.common.actor import Role, system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope, system_scope

SALT = "console.base.accounts.verification"
VALID = timedelta(days=3)
TASK = "accounts.send_verification"
TEXT = """\
Somebody, most likely you, signed up for Freshet with this address.

Open this link to confirm that it is yours; it is good for three days:

{link}

If it was not you, there is nothing to do.
"""


def enqueue_verification(*, user: User, organization_id: str) -> None:
    """Enqueues the mail; a worker sends it once the surrounding transaction has committed."""
    enqueue_task(task=TASK, organization_id=organization_id, arguments={"user_id": user.pk})


def send_verification(*, user_id: str) -> None:
    """Sends the mail, unless the address was verified meanwhile."""
    user = User.objects.filter(pk=user_id, email_verified_at=None).first()
    if user is None:
        return
    token = signing.dumps({"user": user.pk, "email": user.email}, salt=SALT)
    link = f"{config().web.public_url}/verify?token={token}"
    EmailMessage("Confirm your address", TEXT.format(link=link), to=[user.email]).send()


def request_verification(*, email: str, address: str) -> None:
    """Sends the mail again if an unverified owner has the address. Raises `TooManyRequests`.

    It returns nothing either way, so that nobody learns which addresses have accounts.
    """
    limit = config().limits.signups_per_address
    check_address(kind="verification", address=address, limit=limit)
    note_address(kind="verification", address=address)
    with system_scope():
        membership = (
            Membership.objects.filter(
                user__email=normal_email(email), user__email_verified_at=None, role=Role.OWNER
            )
            .select_related("user")
            .first()
        )
        if membership is not None:
            enqueue_verification(user=membership.user, organization_id=membership.organization_id)


def verify_email(*, token: str) -> User:
    """Verifies a user's address by the mail's token. Raises `TokenExpired`, `TokenInvalid`.

    The organizations that the user owns count as verified from then on, and may get public
    endpoints. Repeating it changes nothing.
    """
    try:
        claim = signing.loads(token, salt=SALT, max_age=VALID)
    except signing.SignatureExpired as error:
        raise TokenExpired from error
    except signing.BadSignature as error:
        raise TokenInvalid from error
    user = User.objects.select_for_update().filter(pk=claim["user"], email=claim["email"]).first()
    if user is None:
        raise TokenInvalid
    if user.email_verified_at is None:
        user.email_verified_at = now()
        user.save(update_fields=["email_verified_at"])
    with system_scope():
        owned = list(
            Membership.objects.filter(
                user=user, role=Role.OWNER, organization__verified_at=None
            ).values_list("organization_id", flat=True)
        )
    for organization_id in owned:
        _verify_organization(organization_id)
    return user


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

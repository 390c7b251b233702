"""Verifies that a person owns the address that they signed up with.

The mail's link carries a signed token that names user and address and expires. No token is stored.
The token shows that its reader gets the address's mail. That they signed up too is shown by the
account's session or by its password: otherwise the owner of an address who opens a link that they
did not expect would confirm the account of somebody else.
"""

from __future__ import annotations

from datetime import timedelta

from django.core import signing
from django.core.mail import EmailMessage

from console.base.accounts.errors import SignUpNotShown, TokenExpired, TokenInvalid
from console.base.accounts.models import Membership, User
from console.base.accounts.models.user import normal_email
from console.base.accounts.services.limits import check_address, note_address
from console.base.accounts.services.passwords import require_password
from console.base.accounts.services.proving import mark_proved
from console.base.common.actor import Role
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import system_scope

SALT = "console.base.accounts.verification"
VALID = timedelta(days=3)
TASK = "accounts.send_verification"
TEXT = """\
Somebody, most likely you, signed up for Freshet with this address.

Open this link to confirm that it is yours; it is good for three days. It asks for the password of
the sign-up, unless you are signed in:

{link}

If it was not you, there is nothing to do. If you want the account, set a password of your own: then
all that the other person could use it by ends.

{reset}
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
    reset = f"{config().web.public_url}/forgotten"
    body = TEXT.format(link=link, reset=reset)
    EmailMessage("Confirm your address", body, to=[user.email]).send()


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


def verify_email(*, token: str, signed_in: User | None, password: str | None, address: str) -> User:
    """Verifies a user's address by the mail's token; repeating it changes nothing.

    `signed_in` is the user of the request's session. Where that is another one or None, `password`
    has to be the account's. Raises `TokenExpired`, `TokenInvalid`, `SignUpNotShown`, and what
    `require_password` raises.
    """
    try:
        claim = signing.loads(token, salt=SALT, max_age=VALID)
    except signing.SignatureExpired as error:
        raise TokenExpired from error
    except signing.BadSignature as error:
        raise TokenInvalid from error
    users = User.objects.filter(pk=claim["user"], email=claim["email"])
    user = users.first()
    if user is None:
        raise TokenInvalid
    if user.email_verified_at is not None:
        return user
    if signed_in is None or signed_in.pk != user.pk:
        if not password:
            raise SignUpNotShown
        require_password(user=user, password=password, pointer="/password", address=address)
    # Whoever takes the account over meanwhile changes the password.
    unchanged = users.select_for_update().filter(password=user.password).first()
    if unchanged is None:
        raise TokenInvalid
    mark_proved(unchanged)
    return unchanged

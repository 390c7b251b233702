"""Mails to an address that may have an account. Whoever has one requested learns nothing of that.

A request stores a row and a task for every address alike, and so takes as long and answers the same
for each; a worker looks whether there is an account.
"""

from __future__ import annotations

from django.core.mail import EmailMessage

from console.base.accounts.choices import MailPurpose
from console.base.accounts.models import PasswordReset, User
from console.base.accounts.models.user import normal_email
from console.base.accounts.reset_tokens import reset_tokens
from console.base.accounts.services.attempts import make_sign_in_link_token
from console.base.accounts.services.limits import check_address, events_of_address, note_address
from console.base.accounts.services.people import enqueue_for_nobody
from console.base.common import locks
from console.base.common.conf import config
from console.base.common.transactions import task_transaction

TASK = "accounts.send_password_reset"
# The most mails to one account in an hour, whoever asks for them.
MAILS_MAX = 5
# The kind of event that a mail counts as.
KINDS = {
    MailPurpose.RESET: "reset_mail",
    MailPurpose.SIGN_IN: "sign_in_mail",
    MailPurpose.SIGN_UP: "sign_up_mail",
}
SUBJECTS = {
    MailPurpose.RESET: "Set a new password",
    MailPurpose.SIGN_IN: "Sign in with a browser that is new to us",
    MailPurpose.SIGN_UP: "Your address has an account already",
}
TEXTS = {
    MailPurpose.RESET: """\
Somebody, most likely you, asked to set a new password for your Freshet account.

Open this link to do it; it is good for one hour, and once:

{reset}

If it was not you, there is nothing to do: your password stays as it is.
""",
    MailPurpose.SIGN_IN: """\
There were many wrong passwords for your Freshet account, so browsers that are new to us have to
wait. Open this link to sign in with your password without the wait; it is good for one hour:

{sign_in}

If you did not ask for it, there is nothing to do. The wrong passwords opened nothing.
""",
    MailPurpose.SIGN_UP: """\
Somebody, most likely you, tried to sign up for Freshet with this address. It has an account
already. Sign in to it:

{console}/signin

or set a new password; this link is good for one hour, and once:

{reset}

If it was not you, there is nothing to do: nobody got into your account.
""",
}


def request_password_reset(*, email: str, address: str) -> None:
    """Requests the mail that sets a new password. Raises `TooManyRequests` (per network address).

    `address` is the network address of who asks.
    """
    _check_address(address)
    _enqueue_mail(email, MailPurpose.RESET)


def request_sign_in_link(*, email: str, address: str) -> None:
    """Requests the mail whose link lets a browser sign in as if it had before.

    Raises `TooManyRequests` (per network address), with the limit of password resets.
    """
    _check_address(address)
    _enqueue_mail(email, MailPurpose.SIGN_IN)


def request_signup_notice(*, email: str) -> None:
    """Requests the mail that tells an account's owner of a further sign-up with its address."""
    _enqueue_mail(email, MailPurpose.SIGN_UP)


def _check_address(address: str) -> None:
    limit = config().limits.password_resets_per_address
    check_address(kind="password_reset", address=address, limit=limit)
    note_address(kind="password_reset", address=address)


def _enqueue_mail(email: str, purpose: MailPurpose) -> None:
    reset = PasswordReset.objects.create(email=normal_email(email), purpose=purpose)
    enqueue_for_nobody(task=TASK, arguments={"reset_id": reset.pk})


def send_password_reset(*, reset_id: str) -> None:
    """Sends a requested mail if there is an account that got fewer than `MAILS_MAX` this hour.

    Raises `OSError` where the mail server cannot be reached, and where another worker is sending
    such a mail to the account at this moment: otherwise the two could both be the last one.
    """
    with task_transaction():
        reset = PasswordReset.objects.filter(pk=reset_id).first()
        if reset is None:
            return
        user = User.objects.filter(email=reset.email, is_active=True).first()
        if user is not None:
            if not locks.try_lock("reset_mail", user.pk):
                message = "another worker is sending such a mail"
                raise BlockingIOError(message)
            # Each purpose has its own limit: who signs up again and again stops no reset.
            kind = KINDS[MailPurpose(reset.purpose)]
            if events_of_address(kind=kind, address=user.pk) < MAILS_MAX:
                _mail_to(user, MailPurpose(reset.purpose)).send()
                note_address(kind=kind, address=user.pk)
        reset.delete()


def _mail_to(user: User, purpose: MailPurpose) -> EmailMessage:
    console = config().web.public_url
    body = TEXTS[purpose].format(
        console=console,
        reset=f"{console}/password-reset#{user.pk}.{reset_tokens.make_token(user)}",
        sign_in=f"{console}/signin#{make_sign_in_link_token(user.email)}",
    )
    return EmailMessage(SUBJECTS[purpose], body, to=[user.email])

"""Passwords: checked for strength, changed by whoever knows them, or set anew by mail.

The mail's link carries Django's reset token: an HMAC over the password's hash and the last sign-in.
So its use, any other change of the password, and a sign-in each make it invalid.
"""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.http import HttpRequest

from console.base.accounts.errors import CurrentPasswordWrong, ResetTokenInvalid
from console.base.accounts.models import PasswordReset, User, UserSession
from console.base.accounts.models.user import normal_email
from console.base.accounts.services.attempts import (
    account_subject,
    begin_attempt,
    clear_attempts,
    person_subject,
    take_back,
)
from console.base.accounts.services.hashing import check_hash, hash_password
from console.base.accounts.services.limits import check_address, events_of_address, note_address
from console.base.accounts.services.people import audit_person, enqueue_for_nobody, notify_person
from console.base.accounts.services.sessions import end_sessions, renew_session
from console.base.common import locks
from console.base.common.conf import config
from console.base.common.errors import FieldError, ValidationFailed
from console.base.common.requests import client_address
from console.base.common.transactions import commit_so_far, task_transaction

TASK = "accounts.send_password_reset"
# The most mails to one account in an hour, whoever asks for them.
MAILS_MAX = 5
TEXT = """\
Somebody, most likely you, asked to set a new password for your Freshet account.

Open this link to do it; it is good for one hour, and once:

{link}

If it was not you, there is nothing to do: your password stays as it is.
"""


def check_password(*, password: str, user: User, pointer: str) -> None:
    """Raises `ValidationFailed` for a password that is too easy to guess."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise ValidationFailed(
            errors=[
                FieldError(pointer, reason.code or "invalid", str(reason.messages[0]))
                for reason in error.error_list
            ]
        ) from error


def request_password_reset(*, email: str, address: str) -> None:
    """Requests the mail that sets a new password. Raises `TooManyRequests` (per network address).

    A worker looks whether there is an account. This request takes as long, and answers the same,
    whether or not there is one.
    """
    limit = config().limits.password_resets_per_address
    check_address(kind="password_reset", address=address, limit=limit)
    note_address(kind="password_reset", address=address)
    reset = PasswordReset.objects.create(email=normal_email(email))
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
            if events_of_address(kind="reset_mail", address=user.pk) < MAILS_MAX:
                token = f"{user.pk}.{default_token_generator.make_token(user)}"
                link = f"{config().web.public_url}/password-reset#{token}"
                EmailMessage("Set a new password", TEXT.format(link=link), to=[user.email]).send()
                note_address(kind="reset_mail", address=user.pk)
        reset.delete()


def reset_password(*, token: str, password: str, address: str) -> User:
    """Sets a new password with the mail's token, and ends all sessions of the account.

    A second factor stays: the next sign-in asks for it. Raises `ResetTokenInvalid`,
    `TooManyAtOnce`, and `ValidationFailed` for a weak password.
    """
    user_id, _, proof = token.partition(".")
    users = User.objects.filter(pk=user_id, is_active=True)
    user = users.first()
    if user is None or not default_token_generator.check_token(user, proof):
        raise ResetTokenInvalid
    check_password(password=password, user=user, pointer="/password")
    hashed = hash_password(password, address=address)
    # Of two uses at once the second waits, and sees the first's password: its token is invalid.
    user = users.select_for_update().first()
    if user is None or not default_token_generator.check_token(user, proof):
        raise ResetTokenInvalid
    user.password = hashed
    user.save(update_fields=["password"])
    end_sessions(user=user, but_for=None, address=address)
    clear_attempts(account_subject(user.email))
    audit_person(user=user, action="user.reset_password", address=address)
    notify_person(user=user, about="password_changed")
    return user


def require_password(*, user: User, password: str, pointer: str, address: str) -> None:
    """Checks the password of a signed-in person, whose session somebody else may have taken over.

    The attempt counts before the password is looked at, and no more once it was right. Does not
    reset the count of wrong attempts: the caller does, once it has checked a code too. What the
    request wrote before is committed. Raises `TooManyRequests`, `TooManyAtOnce`,
    `CurrentPasswordWrong`.
    """
    attempt = begin_attempt(person_subject(user.pk))
    commit_so_far()
    if not check_hash(user.password, password, address=address).right:
        wrong = FieldError(pointer, "wrong", CurrentPasswordWrong.title)
        raise CurrentPasswordWrong(errors=[wrong])
    take_back(attempt)
    commit_so_far()


def change_password(
    *, request: HttpRequest, session: UserSession, current_password: str, new_password: str
) -> None:
    """Changes the password of a signed-in person, and ends their other sessions.

    Raises `ValidationFailed` for a weak password, and what `require_password` raises.
    """
    user, address = session.user, client_address(request)
    pointer = "/current_password"
    require_password(user=user, password=current_password, pointer=pointer, address=address)
    check_password(password=new_password, user=user, pointer="/new_password")
    hashed = hash_password(new_password, address=address)
    unchanged = User.objects.select_for_update().filter(pk=user.pk, password=user.password)
    if not unchanged.exists():
        wrong = FieldError(pointer, "wrong", CurrentPasswordWrong.title)
        raise CurrentPasswordWrong(errors=[wrong])
    clear_attempts(person_subject(user.pk))
    user.password = hashed
    user.save(update_fields=["password"])
    renew_session(request=request, session=session)
    end_sessions(user=user, but_for=session, address=address)
    audit_person(user=user, action="user.change_password", address=address)
    notify_person(user=user, about="password_changed")

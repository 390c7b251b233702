"""Passwords: how good one must be, changed by who knows it, set anew by who reads the mail.

The mail's link carries Django's reset token: an HMAC over the password's hash and the last sign-in.
So it is used up with its use, and dies with any other change of password and with a sign-in.
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
    check_attempts,
    clear_attempts,
    note_failure,
    person_subject,
)
from console.base.accounts.services.limits import check_address, events_of_address, note_address
from console.base.accounts.services.people import audit_person, enqueue_for_nobody, tell_person
from console.base.accounts.services.sessions import end_sessions, renew_session
from console.base.common.conf import config
from console.base.common.errors import FieldError, ValidationFailed
from console.base.common.requests import client_address

TASK = "accounts.send_password_reset"
# To one account in an hour, whoever asks for them.
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
                FieldError(pointer, each.code or "invalid", str(each.messages[0]))
                for each in error.error_list
            ]
        ) from error


def request_password_reset(*, email: str, address: str) -> None:
    """Sends the mail if there is such an account, and does not tell. Raises `TooManyRequests`.

    A worker looks whether there is: here both take as long.
    """
    limit = config().limits.password_resets_per_address
    check_address(kind="password_reset", address=address, limit=limit)
    note_address(kind="password_reset", address=address)
    reset = PasswordReset.objects.create(email=normal_email(email))
    enqueue_for_nobody(task=TASK, arguments={"reset_id": reset.pk})


def send_password_reset(*, reset_id: str) -> None:
    """Sends the mail that was asked for, unless the account got several within the hour."""
    reset = PasswordReset.objects.select_for_update().filter(pk=reset_id).first()
    if reset is None:
        return
    user = User.objects.filter(email=reset.email, is_active=True).first()
    if user is not None and events_of_address(kind="reset_mail", address=user.pk) < MAILS_MAX:
        note_address(kind="reset_mail", address=user.pk)
        token = f"{user.pk}.{default_token_generator.make_token(user)}"
        link = f"{config().web.public_url}/password-reset#{token}"
        EmailMessage("Set a new password", TEXT.format(link=link), to=[user.email]).send()
    reset.delete()


def reset_password(*, token: str, password: str, address: str) -> User:
    """Sets a new password with the mail's token, and ends all sessions of the account.

    A second factor stays: the next sign-in asks for it. Raises `ResetTokenInvalid`,
    `ValidationFailed`.
    """
    user_id, _, proof = token.partition(".")
    # Of two uses at once the second sees the first's password.
    user = User.objects.select_for_update().filter(pk=user_id, is_active=True).first()
    if user is None or not default_token_generator.check_token(user, proof):
        raise ResetTokenInvalid
    check_password(password=password, user=user, pointer="/password")
    user.set_password(password)
    user.save(update_fields=["password"])
    end_sessions(user=user, but_for=None, address=address)
    clear_attempts(account_subject(user.email))
    audit_person(user=user, action="user.reset_password", address=address)
    tell_person(user=user, about="password_changed")
    return user


def require_password(*, user: User, password: str, pointer: str) -> None:
    """Asks somebody who is signed in for the password again: a session may be another's by now.

    Failed attempts count on where the caller does not clear them: a code may be asked for as well.
    Raises `TooManyRequests`, and `CurrentPasswordWrong`, before which the attempt has been counted.
    """
    subject = person_subject(user.pk)
    check_attempts(subject)
    if not user.check_password(password):
        note_failure(subject)
        wrong = FieldError(pointer, "wrong", CurrentPasswordWrong.title)
        raise CurrentPasswordWrong(errors=[wrong])


def change_password(
    *, request: HttpRequest, session: UserSession, current_password: str, new_password: str
) -> None:
    """Changes the password of who is signed in, and ends their other sessions.

    Raises `TooManyRequests`, `ValidationFailed`, and `CurrentPasswordWrong`, before which the
    attempt has been counted.
    """
    user, address = session.user, client_address(request)
    require_password(user=user, password=current_password, pointer="/current_password")
    check_password(password=new_password, user=user, pointer="/new_password")
    clear_attempts(person_subject(user.pk))
    user.set_password(new_password)
    user.save(update_fields=["password"])
    renew_session(request=request, session=session)
    end_sessions(user=user, but_for=session, address=address)
    audit_person(user=user, action="user.change_password", address=address)
    tell_person(user=user, about="password_changed")

"""Passwords: checked for strength, changed by whoever knows them, or set anew by mail.

The mail's link carries a token (`reset_tokens.py`): its use makes it invalid, and so do any other
change of the password and a sign-in where the account's address is proved.
"""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from console.base.accounts.errors import CurrentPasswordWrong, ResetTokenInvalid
from console.base.accounts.models import User, UserSession
from console.base.accounts.reset_tokens import reset_tokens
from console.base.accounts.services.attempts import (
    begin_attempt,
    clear_attempts,
    clear_attempts_of_account,
    person_subject,
    take_back,
)
from console.base.accounts.services.hashing import check_hash, hash_password
from console.base.accounts.services.people import audit_person, notify_person
from console.base.accounts.services.proving import take_over
from console.base.accounts.services.sessions import end_sessions, renew_session
from console.base.common.clock import now
from console.base.common.errors import FieldError, ValidationFailed
from console.base.common.requests import client_address
from console.base.common.transactions import commit_so_far


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


def reset_password(*, token: str, password: str, address: str) -> User:
    """Sets a new password with the mail's token, and ends all sessions of the account.

    A second factor stays: the next sign-in asks for it. An account whose address was not proved
    is taken over. Raises `ResetTokenInvalid`, `TooManyAtOnce`, and `ValidationFailed` for a weak
    password.
    """
    user_id, _, proof = token.partition(".")
    users = User.objects.filter(pk=user_id, is_active=True)
    user = users.first()
    if user is None or not reset_tokens.check_token(user, proof):
        raise ResetTokenInvalid
    check_password(password=password, user=user, pointer="/password")
    hashed = hash_password(password, address=address)
    # Of two uses at once the second waits, and sees the first's password: its token is invalid.
    user = users.select_for_update().first()
    if user is None or not reset_tokens.check_token(user, proof):
        raise ResetTokenInvalid
    if user.email_verified_at is None:
        take_over(user=user, address=address)
    set_password(user, hashed)
    end_sessions(user=user, but_for=None, address=address)
    audit_person(user=user, action="user.reset_password", address=address)
    notify_person(user=user, about="password_changed")
    return user


def set_password(user: User, hashed: str) -> None:
    """Stores the hash of a new password, which forgets wrong attempts and known devices."""
    user.password = hashed
    user.devices_since = now()
    user.save(update_fields=["password", "devices_since"])
    clear_attempts_of_account(user.email)


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
    set_password(user, hashed)
    renew_session(request=request, session=session)
    end_sessions(user=user, but_for=session, address=address)
    audit_person(user=user, action="user.change_password", address=address)
    notify_person(user=user, about="password_changed")

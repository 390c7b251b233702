"""Sign-in: address and password, and a code where the account has a second factor."""

from __future__ import annotations

from django.contrib import auth
from django.http import HttpRequest

from console.base.accounts.errors import CodeRequired, CodeWrong, InvalidCredentials
from console.base.accounts.models import User
from console.base.accounts.models.user import normal_email
from console.base.accounts.services.attempts import (
    check_attempts,
    clear_attempts,
    note_failure,
    sign_in_subject,
)
from console.base.accounts.services.limits import check_address, note_address
from console.base.accounts.services.second_factors import has_second_factor, take_code
from console.base.accounts.services.sessions import begin_session
from console.base.common.conf import config

KIND = "signin_failed"


def sign_in(
    *, request: HttpRequest, email: str, password: str, code: str | None, address: str
) -> User:
    """Signs in by e-mail address, password and code; returns the user of the new session.

    Raises `TooManyRequests`, `CodeRequired`, and `InvalidCredentials` or `CodeWrong` after it has
    counted the attempt against the network address and the account. An unknown e-mail address takes
    as long as a wrong password.
    """
    check_address(kind=KIND, address=address, limit=config().limits.signins_failed_per_address)
    email = normal_email(email)
    subject = sign_in_subject(request, email)
    check_attempts(subject)
    user = auth.authenticate(request, username=email, password=password)
    if not isinstance(user, User):
        _note_failure(address, subject)
        raise InvalidCredentials
    second_factor = has_second_factor(user)
    if second_factor:
        if not code:
            raise CodeRequired
        if take_code(user=user, code=code) is None:
            _note_failure(address, subject)
            raise CodeWrong
    clear_attempts(subject)
    begin_session(request=request, user=user, second_factor=second_factor)
    return user


def _note_failure(address: str, subject: str) -> None:
    """Counts a wrong attempt against the network address and the account."""
    note_address(kind=KIND, address=address)
    note_failure(subject)

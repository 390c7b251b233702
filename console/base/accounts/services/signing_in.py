"""Sign-in: address and password, and a code where the account has a second factor."""

from __future__ import annotations

from django.http import HttpRequest

from console.base.accounts.errors import CodeRequired, CodeWrong, InvalidCredentials
from console.base.accounts.models import User
from console.base.accounts.models.user import normal_email
from console.base.accounts.services.attempts import (
    begin_attempt,
    check_attempts,
    clear_attempts,
    note_failure,
    sign_in_subjects,
    take_back,
)
from console.base.accounts.services.factors import has_second_factor
from console.base.accounts.services.hashing import check_hash
from console.base.accounts.services.limits import check_address, note_address
from console.base.accounts.services.second_factors import take_code
from console.base.accounts.services.sessions import begin_session
from console.base.common.conf import config
from console.base.common.transactions import commit_so_far

KIND = "signin_failed"


def sign_in(
    *,
    request: HttpRequest,
    email: str,
    password: str,
    code: str | None,
    link: str | None,
    address: str,
) -> User:
    """Signs in by e-mail address, password and code; returns the user of the new session.

    `link` is the token of the mail that `request_sign_in_link` requested, if the browser has one.
    The attempt counts against the network address and the account before the password is looked
    at, and no more once it was right. Raises `TooManyRequests`, `TooManyAtOnce`, `CodeRequired`,
    `InvalidCredentials`, `CodeWrong`. An unknown e-mail address takes as long as a wrong password.
    """
    email = normal_email(email)
    user = User.objects.filter(email=email).first()
    subjects = sign_in_subjects(request, email, user, link)
    if not subjects.known:
        check_address(kind=KIND, address=address, limit=config().limits.signins_failed_per_address)
    attempts = [begin_attempt(subject, brake) for subject, brake in subjects.passwords]
    event = note_address(kind=KIND, address=address)
    commit_so_far()
    verdict = check_hash(user.password if user else None, password, address=address)
    if user is None or not verdict.right or not user.is_active:
        raise InvalidCredentials
    second_factor = has_second_factor(user)
    if second_factor:
        for attempt in attempts:
            take_back(attempt)
        if not code:
            event.delete()
            commit_so_far()
            raise CodeRequired
        commit_so_far()
        check_attempts(subjects.code)
        if take_code(user=user, code=code) is None:
            note_failure(subjects.code)
            raise CodeWrong
    event.delete()
    clear_attempts(*(attempt.subject for attempt in attempts), subjects.code)
    if verdict.renewed is not None:
        user.password = verdict.renewed
        user.save(update_fields=["password"])
    begin_session(request=request, user=user, second_factor=second_factor)
    return user

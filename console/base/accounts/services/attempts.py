"""Limits per account: after some wrong passwords or codes each further one doubles a wait.

They are beside the limits per address (`limits.py`), because a password can be guessed from many
addresses. A wait ends by itself, and somebody who guesses does not lock the owner out: a browser
that has signed in to the account before carries a cookie and is counted separately (OWASP's device
cookies), and setting a new password by mail resets the count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from console.base.accounts.models import FailedAttempts
from console.base.common import locks
from console.base.common.clock import now
from console.base.common.errors import Quota, TooManyRequests
from console.base.common.ids import random_text
from console.base.common.sealing import digest

# So many wrong attempts in a row cause no wait: people mistype.
FREE = 5
WAIT_S_FIRST = 5
WAIT_S_MAX = 900
# After so long without a wrong attempt the count begins at zero again.
FORGOTTEN = timedelta(days=1)
DEVICE_COOKIE = "freshet_device"
DEVICE_SALT = "console.base.accounts.device"
DEVICE_AGE = timedelta(days=180)


def wait_s(failures: int) -> int:
    """Returns the wait in seconds after so many wrong attempts in a row."""
    if failures < FREE:
        return 0
    # Bounded, so that the shift stays small however long somebody goes on.
    doublings = min(failures - FREE, 16)
    return min(WAIT_S_FIRST << doublings, WAIT_S_MAX)


def account_subject(email: str) -> str:
    """Returns the subject under which attempts on an account from unknown devices are counted."""
    return digest("attempts.account", email)


def person_subject(user_id: str) -> str:
    """Returns the subject under which a signed-in person's proofs of who they are are counted."""
    return digest("attempts.person", user_id)


def sign_in_subject(request: HttpRequest, email: str) -> str:
    """Returns the subject of a sign-in: the account, or the account on a device that it knows."""
    account = account_subject(email)
    device = _device_of(request, account)
    return account if device is None else digest("attempts.device", account, device)


def remember_device(request: HttpRequest, response: HttpResponseBase, email: str) -> None:
    """Sets the device cookie on the answer to a person who proved who they are."""
    account = account_subject(email)
    device = _device_of(request, account) or random_text(26)
    response.set_cookie(
        DEVICE_COOKIE,
        signing.dumps({"account": account, "device": device}, salt=DEVICE_SALT),
        max_age=DEVICE_AGE,
        httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
        samesite="Lax",
    )


def _device_of(request: HttpRequest, account: str) -> str | None:
    """Returns the device's id from the request's cookie, or None if it has none for the account."""
    try:
        claim = signing.loads(
            request.COOKIES.get(DEVICE_COOKIE, ""), salt=DEVICE_SALT, max_age=DEVICE_AGE
        )
    except signing.BadSignature:
        return None
    return str(claim["device"]) if claim["account"] == account else None


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """An attempt that counts as a wrong one until it is taken back."""

    subject: str
    at: datetime
    # When the wrong attempt before it was; None if there was none that still counts.
    before: datetime | None


def begin_attempt(subject: str) -> CountedAttempt:
    """Counts an attempt as a wrong one, before the proof is looked at.

    So simultaneous guesses count although no lock is held while they are checked. Raises
    `TooManyRequests` as `check_attempts` does.
    """
    check_attempts(subject)
    earlier = FailedAttempts.objects.filter(pk=subject).first()
    row = note_failure(subject)
    before = earlier.changed_at if earlier is not None and row.failures > 1 else None
    return CountedAttempt(subject, row.changed_at, before)


def take_back(attempt: CountedAttempt) -> None:
    """Counts an attempt no more, because the proof was right."""
    locks.lock_briefly("attempts", attempt.subject)
    row = FailedAttempts.objects.filter(pk=attempt.subject).first()
    if row is None:
        return
    if row.failures <= 1:
        row.delete()
        return
    row.failures -= 1
    if attempt.before is not None and row.changed_at == attempt.at:
        # No other attempt came behind this one: the wait is that of the one before.
        row.changed_at = attempt.before
    row.save()


def check_attempts(subject: str) -> None:
    """Raises `TooManyRequests` while the subject has to wait, even if the proof would be right.

    Holds the subject's lock until the transaction ends or waits, so that simultaneous guesses are
    counted one after the other.
    """
    locks.lock_briefly("attempts", subject)
    row = FailedAttempts.objects.filter(pk=subject).first()
    if row is None or row.changed_at <= now() - FORGOTTEN:
        return
    remaining_s = (row.changed_at - now()).total_seconds() + wait_s(row.failures)
    if remaining_s > 0:
        raise TooManyRequests(
            "There were too many wrong attempts. Wait, or set the password anew by mail.",
            quota=Quota("wrong_attempts_in_a_row", FREE, row.failures),
            retry_after_s=math.ceil(remaining_s),
        )


def note_failure(subject: str) -> FailedAttempts:
    """Counts a wrong attempt. The caller has called `check_attempts`, and so holds the lock."""
    at = now()
    row = FailedAttempts.objects.filter(pk=subject).first() or FailedAttempts(subject=subject)
    row.failures = row.failures + 1 if row.changed_at > at - FORGOTTEN else 1
    row.changed_at = at
    row.save()
    return row


def clear_attempts(subject: str) -> None:
    """Resets the subject's count, after a right attempt."""
    FailedAttempts.objects.filter(pk=subject).delete()


def purge_attempts() -> int:
    """Deletes counts that begin at zero again anyway; returns how many."""
    deleted, _ = FailedAttempts.objects.filter(changed_at__lte=now() - FORGOTTEN).delete()
    return deleted

"""Limits per account: after some wrong passwords or codes each further one doubles a wait.

They are beside the limits per address (`limits.py`), because a password can be guessed from many
addresses. A wait ends by itself, and somebody who guesses does not lock the owner out: a browser
that has signed in to the account before carries a cookie and is counted separately (OWASP's device
cookies), and setting a new password by mail resets the count.
"""

from __future__ import annotations

import math
from datetime import timedelta

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


def check_attempts(subject: str) -> None:
    """Raises `TooManyRequests` while the subject has to wait, even if the proof would be right.

    Holds the subject's lock until the transaction ends, so that simultaneous guesses are counted
    one after the other.
    """
    locks.lock("attempts", subject)
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


def note_failure(subject: str) -> None:
    """Counts a wrong attempt. The caller has called `check_attempts`, and so holds the lock."""
    at = now()
    row = FailedAttempts.objects.filter(pk=subject).first() or FailedAttempts(subject=subject)
    row.failures = row.failures + 1 if row.changed_at > at - FORGOTTEN else 1
    row.changed_at = at
    row.save()


def clear_attempts(subject: str) -> None:
    """Resets the subject's count, after a right attempt."""
    FailedAttempts.objects.filter(pk=subject).delete()


def purge_attempts() -> int:
    """Deletes counts that begin at zero again anyway; returns how many."""
    deleted, _ = FailedAttempts.objects.filter(changed_at__lte=now() - FORGOTTEN).delete()
    return deleted

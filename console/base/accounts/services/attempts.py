"""Limits per account: who guesses waits, twice as long after each wrong guess.

Beside the limits per address (`limits.py`), because a password can be guessed from many addresses.
A wait ends by itself, and nobody is kept out of their own account by who guesses: a browser that
has signed in to it before carries a cookie and is counted by itself (OWASP's device cookies), and
who sets the password anew by mail begins at nothing.
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

# So many wrong ones in a row cost nothing: people mistype.
FREE = 5
WAIT_S_FIRST = 5
WAIT_S_MAX = 900
# Without a wrong one for so long, it begins anew.
FORGOTTEN = timedelta(days=1)
DEVICE_COOKIE = "freshet_device"
DEVICE_SALT = "console.base.accounts.device"
DEVICE_AGE = timedelta(days=180)


def wait_s(failures: int) -> int:
    """Seconds to wait after so many wrong ones in a row."""
    if failures < FREE:
        return 0
    # A small number, however long somebody goes on.
    doublings = min(failures - FREE, 16)
    return min(WAIT_S_FIRST << doublings, WAIT_S_MAX)


def account_subject(email: str) -> str:
    """What is counted for an address, from wherever it is tried."""
    return digest("attempts.account", email)


def person_subject(user_id: str) -> str:
    """What is counted for somebody who is signed in and proves who they are once more."""
    return digest("attempts.person", user_id)


def sign_in_subject(request: HttpRequest, email: str) -> str:
    """What a sign-in is counted for: the account, or the account on this known device."""
    account = account_subject(email)
    device = _device_of(request, account)
    return account if device is None else digest("attempts.device", account, device)


def remember_device(request: HttpRequest, response: HttpResponseBase, email: str) -> None:
    """Has a browser whose user proved who they are counted by itself from now on."""
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
    try:
        claim = signing.loads(
            request.COOKIES.get(DEVICE_COOKIE, ""), salt=DEVICE_SALT, max_age=DEVICE_AGE
        )
    except signing.BadSignature:
        return None
    return str(claim["device"]) if claim["account"] == account else None


def check_attempts(subject: str) -> None:
    """Raises `TooManyRequests` while the subject has to wait, whether the proof would be right.

    Holds the subject's lock until the transaction ends: many guesses at once do not pass together.
    """
    locks.lock("attempts", subject)
    row = FailedAttempts.objects.filter(pk=subject).first()
    if row is None or row.changed_at <= now() - FORGOTTEN:
        return
    left_s = (row.changed_at - now()).total_seconds() + wait_s(row.failures)
    if left_s > 0:
        raise TooManyRequests(
            "There were too many wrong attempts. Wait, or set the password anew by mail.",
            quota=Quota("wrong_attempts_in_a_row", FREE, row.failures),
            retry_after_s=math.ceil(left_s),
        )


def note_failure(subject: str) -> None:
    """Counts a wrong proof. The caller has checked, and so holds the lock."""
    at = now()
    row = FailedAttempts.objects.filter(pk=subject).first() or FailedAttempts(subject=subject)
    row.failures = row.failures + 1 if row.changed_at > at - FORGOTTEN else 1
    row.changed_at = at
    row.save()


def clear_attempts(subject: str) -> None:
    """Forgets the wrong ones: there was a right one."""
    FailedAttempts.objects.filter(pk=subject).delete()


def purge_attempts() -> int:
    """Deletes what is forgotten; gives how many."""
    deleted, _ = FailedAttempts.objects.filter(changed_at__lte=now() - FORGOTTEN).delete()
    return deleted

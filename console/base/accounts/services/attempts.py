"""Limits per account: after some wrong passwords or codes each further one begins a wait.

They are beside the limits per address (`limits.py`), because a password can be guessed from many
addresses. A wait ends by itself, and somebody who guesses does not lock the owner out:

- A browser that has signed in to the account before carries a cookie and has a count of its own
  (OWASP's device cookies), and so has one that was opened by the link of a mail.
- Any other browser meets the count of its own network on this account, whose waits double, and the
  count of the account over all networks, which allows more and whose waits stay short. So guesses
  from many networks are bounded, and a wait that others cause is at most `OVERALL.max_s` long.
- Codes are asked for after the right password, and counted by themselves: who does not know the
  password delays nobody's code.

Setting a new password resets the counts of the account, and forgets the devices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from console.base.accounts.models import FailedAttempts, User
from console.base.common import locks
from console.base.common.clock import now
from console.base.common.errors import Quota, TooManyRequests
from console.base.common.ids import random_text
from console.base.common.requests import client_address, network_of
from console.base.common.sealing import digest

# After so long without a wrong attempt the count begins at zero again.
FORGOTTEN = timedelta(days=1)
DEVICE_COOKIE = "freshet_device"
DEVICE_SALT = "console.base.accounts.device"
DEVICE_AGE = timedelta(days=180)
# The token of a mail's link by which a browser is as good as a known device.
LINK_SALT = "console.base.accounts.sign_in_link"
LINK_AGE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Brake:
    """How long an attempt has to wait after so many wrong ones in a row."""

    # So many cause no wait: people mistype.
    free: int
    first_s: int
    max_s: int

    def wait_s(self, failures: int) -> int:
        """Returns the wait in seconds after so many wrong attempts in a row: it doubles."""
        if failures < self.free:
            return 0
        # Bounded, so that the shift stays small however long somebody goes on.
        doublings = min(failures - self.free, 16)
        return min(self.first_s << doublings, self.max_s)


STRONG = Brake(free=5, first_s=5, max_s=900)
# Of all unknown browsers together: then two guesses a minute, wherever they come from.
OVERALL = Brake(free=50, first_s=5, max_s=30)


@dataclass(frozen=True, slots=True)
class SignInSubjects:
    """Under which subjects a sign-in's passwords and codes are counted."""

    passwords: tuple[tuple[str, Brake], ...]
    code: str
    # Whether it is a known device's: then what others of its network did does not count.
    known: bool


def person_subject(user_id: str) -> str:
    """Returns the subject under which a signed-in person's proofs of who they are are counted."""
    return digest("attempts.person", user_id)


def sign_in_subjects(
    request: HttpRequest, email: str, user: User | None, link: str | None
) -> SignInSubjects:
    """Returns the subjects of a sign-in to an address, whose account is `user` if there is one.

    `link` is the token of a mail's link, if the browser was opened by one.
    """
    account = _account_of(email)
    device = _device_of(request, account, user) or _device_of_link(link, account, user)
    if device is not None:
        own = digest("attempts.device", account, device)
        codes = digest("attempts.device_code", account, device)
        return SignInSubjects(((own, STRONG),), codes, known=True)
    network = digest("attempts.network", account, network_of(client_address(request)))
    passwords = ((network, STRONG), (account, OVERALL))
    return SignInSubjects(passwords, _codes_of(account), known=False)


def clear_attempts_of_account(email: str) -> None:
    """Resets the counts of unknown browsers on an account, over all networks."""
    account = _account_of(email)
    clear_attempts(account, _codes_of(account))


def make_sign_in_link_token(email: str) -> str:
    """Returns the token of a mail's link to an address; see `LINK_SALT`."""
    return signing.dumps(_claim(_account_of(email), random_text(26)), salt=LINK_SALT)


def remember_device(request: HttpRequest, response: HttpResponseBase, user: User) -> None:
    """Sets the device cookie on the answer to a person who proved who they are."""
    account = _account_of(user.email)
    device = _device_of(request, account, user) or random_text(26)
    response.set_cookie(
        DEVICE_COOKIE,
        signing.dumps(_claim(account, device), salt=DEVICE_SALT),
        max_age=DEVICE_AGE,
        httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
        samesite="Lax",
    )


def _account_of(email: str) -> str:
    """Returns the subject of an account over all networks, whether or not there is the account."""
    return digest("attempts.account", email)


def _codes_of(account: str) -> str:
    """Returns the subject of the codes that unknown browsers give for an account."""
    return digest("attempts.code", account)


def _claim(account: str, device: str) -> dict[str, object]:
    return {"account": account, "device": device, "at": now().timestamp()}


def _device_of(request: HttpRequest, account: str, user: User | None) -> str | None:
    """Returns the device's id from the request's cookie, or None if it has none for the account."""
    text = request.COOKIES.get(DEVICE_COOKIE, "")
    return _device_in(text, DEVICE_SALT, DEVICE_AGE, account, user)


def _device_of_link(link: str | None, account: str, user: User | None) -> str | None:
    """Returns the device's id from a mail's link, or None if it is none for the account."""
    return _device_in(link or "", LINK_SALT, LINK_AGE, account, user)


def _device_in(text: str, salt: str, age: timedelta, account: str, user: User | None) -> str | None:
    """Returns the device in a signed text; None also if a password was set since it was signed.

    So whoever knew an earlier password, and signed in with many browsers, has no use of them.
    """
    try:
        claim = signing.loads(text, salt=salt, max_age=age)
    except signing.BadSignature:
        return None
    since = user.devices_since if user is not None else None
    if claim["account"] != account or (since and claim.get("at", 0.0) < since.timestamp()):
        return None
    return str(claim["device"])


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """An attempt that counts as a wrong one until it is taken back."""

    subject: str
    at: datetime
    # When the wrong attempt before it was; None if there was none that still counts.
    before: datetime | None


def begin_attempt(subject: str, brake: Brake = STRONG) -> CountedAttempt:
    """Counts an attempt as a wrong one, before the proof is looked at.

    So simultaneous guesses count although no lock is held while they are checked. Raises
    `TooManyRequests` as `check_attempts` does.
    """
    check_attempts(subject, brake)
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


def check_attempts(subject: str, brake: Brake = STRONG) -> None:
    """Raises `TooManyRequests` while the subject has to wait, even if the proof would be right.

    Holds the subject's lock until the transaction ends or waits, so that simultaneous guesses are
    counted one after the other.
    """
    locks.lock_briefly("attempts", subject)
    row = FailedAttempts.objects.filter(pk=subject).first()
    if row is None or row.changed_at <= now() - FORGOTTEN:
        return
    remaining_s = (row.changed_at - now()).total_seconds() + brake.wait_s(row.failures)
    if remaining_s > 0:
        raise TooManyRequests(
            "There were too many wrong attempts. Wait, or go on by a link that is sent by mail.",
            quota=Quota("wrong_attempts_in_a_row", brake.free, row.failures),
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


def clear_attempts(*subjects: str) -> None:
    """Resets the counts of subjects, after a right attempt."""
    FailedAttempts.objects.filter(pk__in=subjects).delete()


def purge_attempts() -> int:
    """Deletes counts that begin at zero again anyway; returns how many."""
    deleted, _ = FailedAttempts.objects.filter(changed_at__lte=now() - FORGOTTEN).delete()
    return deleted

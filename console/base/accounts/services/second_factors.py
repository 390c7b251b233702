"""Second factors: time-based codes (RFC 6238), and recovery codes that each replace one once.

The secret is stored sealed, recovery codes as keyed digests. A time-based code is accepted once:
the time step of the last one is stored, and no code of that step or an earlier one is accepted.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import pyotp
import segno
from django.http import HttpRequest
from pyotp.exceptions import OTPVerificationError

from console.base.accounts.errors import (
    AddressNotProved,
    SecondFactorCodeWrong,
    SecondFactorExists,
    SecondFactorMissing,
)
from console.base.accounts.models import RecoveryCode, SecondFactor, User, UserSession
from console.base.accounts.services.attempts import (
    check_attempts,
    clear_attempts,
    note_failure,
    person_subject,
)
from console.base.accounts.services.factors import delete_factor, has_second_factor
from console.base.accounts.services.passwords import require_password
from console.base.accounts.services.people import audit_person, notify_person
from console.base.accounts.services.sessions import end_sessions, renew_session
from console.base.common.clock import now
from console.base.common.errors import FieldError
from console.base.common.ids import random_text
from console.base.common.requests import client_address
from console.base.common.sealing import SealBroken, digest, seal, unseal

logger = logging.getLogger(__name__)

ISSUER = "Freshet"
# Steps of 30 s before and after the current one that are accepted too, because clocks differ.
STEPS_EITHER_SIDE = 1
RECOVERY_CODES = 10
# Base32 characters: 80 random bits, shown in groups of four characters.
RECOVERY_CHARS = 16
TOTP_SHAPE = re.compile(r"[0-9]{6}")
RECOVERY_SHAPE = re.compile(rf"[a-z2-7]{{{RECOVERY_CHARS}}}")


class Proof(StrEnum):
    """The kind of code that was accepted as the second factor."""

    TOTP = "totp"
    RECOVERY_CODE = "recovery_code"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A new secret for an authenticator app, which is shown only now."""

    # In base32, to type in.
    secret: str
    otpauth_uri: str
    # `otpauth_uri` as a QR code: an SVG document.
    qr_svg: str


def begin_enrolment(*, user: User, password: str, address: str) -> Enrolment:
    """Makes a secret, which takes effect once `confirm_enrolment` accepts a code of it.

    An earlier secret that was not confirmed is replaced. Raises `AddressNotProved`: otherwise a
    person who signed up with somebody's address could ask its owner for a code.
    Raises `SecondFactorExists`, `TooManyRequests`, and `CurrentPasswordWrong` after it has counted
    the attempt.
    """
    if user.email_verified_at is None:
        raise AddressNotProved
    if has_second_factor(user):
        raise SecondFactorExists
    require_password(user=user, password=password, pointer="/password", address=address)
    clear_attempts(person_subject(user.pk))
    secret = pyotp.random_base32()
    SecondFactor.objects.update_or_create(
        user=user,
        defaults={
            "sealed_secret": seal(secret.encode(), _seal_key(user)),
            "last_step": 0,
            "created_at": now(),
        },
    )
    audit_person(user=user, action="second_factor.begin", address=address)
    uri = pyotp.TOTP(secret).provisioning_uri(name=user.email, issuer_name=ISSUER)
    return Enrolment(secret=secret, otpauth_uri=uri, qr_svg=_qr_svg(uri))


def confirm_enrolment(*, request: HttpRequest, session: UserSession, code: str) -> list[str]:
    """Accepts the first code of a new secret; returns the recovery codes, which are shown only now.

    All other sessions end. Raises `SecondFactorMissing`, `SecondFactorExists`, `TooManyRequests`,
    and `SecondFactorCodeWrong` after it has counted the attempt.
    """
    user = session.user
    factor = SecondFactor.objects.select_for_update().filter(user=user).first()
    if factor is None:
        raise SecondFactorMissing
    if factor.confirmed_at is not None:
        raise SecondFactorExists
    _require_proof(user, accepts=lambda: _take_totp(factor, code))
    factor.confirmed_at = now()
    factor.save(update_fields=["confirmed_at"])
    codes = _make_recovery_codes(user)
    renew_session(request=request, session=session)
    UserSession.objects.filter(pk=session.pk).update(second_factor=True)
    address = client_address(request)
    end_sessions(user=user, but_for=session, address=address)
    audit_person(user=user, action="second_factor.add", address=address)
    notify_person(user=user, about="second_factor_added")
    return codes


def remove_second_factor(*, session: UserSession, password: str, code: str, address: str) -> None:
    """Removes the second factor, so that sign-in asks for the password alone.

    `code` may be a recovery code. Raises `SecondFactorMissing`, `TooManyRequests`, and
    `CurrentPasswordWrong` or `SecondFactorCodeWrong` after it has counted the attempt.
    """
    user = session.user
    if not has_second_factor(user):
        raise SecondFactorMissing
    # The password comes first: a code is used up even if a later check fails.
    require_password(user=user, password=password, pointer="/password", address=address)
    require_code(user=user, code=code)
    delete_factor(user)
    audit_person(user=user, action="second_factor.remove", address=address)
    notify_person(user=user, about="second_factor_removed")


def renew_recovery_codes(*, session: UserSession, code: str, address: str) -> list[str]:
    """Makes new recovery codes and deletes the older ones. Raises what `require_code` raises."""
    user = session.user
    require_code(user=user, code=code)
    codes = _make_recovery_codes(user)
    audit_person(user=user, action="second_factor.renew_recovery_codes", address=address)
    notify_person(user=user, about="recovery_codes_made")
    return codes


def reset_second_factor(*, email: str, reason: str) -> bool:
    """Removes the second factor of a person who lost device and recovery codes.

    Whoever calls it has made sure who asks. Returns whether there was a second factor.
    """
    user = User.objects.filter(email=email).first()
    if user is None or not has_second_factor(user):
        return False
    delete_factor(user)
    end_sessions(user=user, but_for=None, address="")
    audit_person(user=user, action="second_factor.reset", address="", detail={"reason": reason})
    notify_person(user=user, about="second_factor_removed")
    return True


def require_code(*, user: User, code: str) -> None:
    """Checks a code of a signed-in person, and uses it up.

    Raises `SecondFactorMissing`, `TooManyRequests`, and `SecondFactorCodeWrong` after it has
    counted the attempt.
    """
    if not has_second_factor(user):
        raise SecondFactorMissing
    _require_proof(user, accepts=lambda: take_code(user=user, code=code) is not None)


def take_code(*, user: User, code: str) -> Proof | None:
    """Uses up a code of the user's app, or a recovery code, and returns which kind it was.

    Returns None for a wrong code, for one that was used, and without a confirmed second factor.
    """
    factor = SecondFactor.objects.select_for_update().filter(user=user).first()
    if factor is None or factor.confirmed_at is None:
        return None
    text = re.sub(r"[\s-]", "", code).lower()
    if TOTP_SHAPE.fullmatch(text):
        return Proof.TOTP if _take_totp(factor, text) else None
    if RECOVERY_SHAPE.fullmatch(text):
        return Proof.RECOVERY_CODE if _take_recovery_code(user, text) else None
    return None


def _require_proof(user: User, *, accepts: Callable[[], bool]) -> None:
    """Calls `accepts`, which checks a code, within the limit on wrong attempts of the user.

    Raises `TooManyRequests`, and `SecondFactorCodeWrong` after it has counted the attempt.
    """
    subject = person_subject(user.pk)
    check_attempts(subject)
    if not accepts():
        note_failure(subject)
        wrong = FieldError("/code", "code_wrong", SecondFactorCodeWrong.title)
        raise SecondFactorCodeWrong(errors=[wrong])
    clear_attempts(subject)


def _take_totp(factor: SecondFactor, code: str) -> bool:
    """Uses up a time-based code, whose row the caller has locked; returns whether it was right."""
    text = re.sub(r"\s", "", code)
    if not TOTP_SHAPE.fullmatch(text):
        return False
    try:
        secret = unseal(bytes(factor.sealed_secret), _seal_key(factor.user)).decode()
        step = pyotp.TOTP(secret).verify_and_get_timecode(
            text, for_time=now(), valid_window=STEPS_EITHER_SIDE
        )
    except OTPVerificationError:
        return False
    except SealBroken:
        # Django's secret key was changed, or the row was moved: no code can be right.
        logger.exception("second_factor.seal_broken user=%s", factor.user_id)
        return False
    if step <= factor.last_step:
        return False
    factor.last_step = step
    factor.save(update_fields=["last_step"])
    return True


def _take_recovery_code(user: User, text: str) -> bool:
    """Uses up a recovery code; returns whether it was right and unused."""
    unused = RecoveryCode.objects.filter(
        user=user, verifier=_recovery_verifier(user, text), used_at=None
    )
    if not unused.update(used_at=now()):
        return False
    notify_person(user=user, about="recovery_code_used")
    return True


def _make_recovery_codes(user: User) -> list[str]:
    """Replaces a user's recovery codes; returns the new ones, in groups of four characters."""
    codes = [random_text(RECOVERY_CHARS) for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(
        RecoveryCode(user=user, verifier=_recovery_verifier(user, code)) for code in codes
    )
    return ["-".join(code[at : at + 4] for at in range(0, RECOVERY_CHARS, 4)) for code in codes]


def _recovery_verifier(user: User, code: str) -> str:
    return digest("recovery_code", user.pk, code)


def _seal_key(user: User) -> str:
    return f"second_factor:{user.pk}"


def _qr_svg(text: str) -> str:
    document = io.BytesIO()
    code = segno.make(text, error="m", micro=False)
    code.save(document, kind="svg", xmldecl=False, nl=False, scale=4, light="#fff")
    return document.getvalue().decode()

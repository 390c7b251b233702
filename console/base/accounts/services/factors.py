"""Whether a person has a second factor, and its removal."""

from __future__ import annotations

from console.base.accounts.models import RecoveryCode, SecondFactor, User, UserSession


def has_second_factor(user: User) -> bool:
    """Returns whether the user has a confirmed second factor, so that sign-in asks for a code."""
    return SecondFactor.objects.filter(user=user).exclude(confirmed_at=None).exists()


def delete_factor(user: User) -> None:
    """Deletes the user's second factor, its recovery codes, and what sessions showed of it."""
    RecoveryCode.objects.filter(user=user).delete()
    SecondFactor.objects.filter(user=user).delete()
    UserSession.objects.filter(user=user).update(second_factor=False)

"""Tokens of the mails that set a new password: an HMAC over what a use of them changes."""

from __future__ import annotations

from django.contrib.auth.tokens import PasswordResetTokenGenerator
from typing_extensions import override

from console.base.accounts.models import User


class ResetTokens(PasswordResetTokenGenerator):
    """Django's, which a use, another password and a sign-in make invalid.

    Of an account whose address is not proved, the proof alone makes them invalid: otherwise whoever
    signed up with it could sign in, or change the password, again and again, and so keep the
    address's owner from ever using one.
    """

    # Tokens that were sent before the class was ours stay valid.
    key_salt = "django.contrib.auth.tokens.PasswordResetTokenGenerator"

    @override
    def _make_hash_value(self, user: User, timestamp: int) -> str:
        if user.email_verified_at is None:
            return f"unproved {user.pk} {user.email} {timestamp}"
        return super()._make_hash_value(user, timestamp)


reset_tokens = ResetTokens()

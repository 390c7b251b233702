"""JSON shapes of what is a person's own."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.base.accounts.api.serializers import PASSWORD_CHARS_MAX
from console.base.accounts.models import UserSession


class UserSessionSerializer(serializers.ModelSerializer[UserSession]):
    """A place where the person is signed in."""

    current = serializers.SerializerMethodField(help_text="The session that asks.")

    class Meta:
        model = UserSession
        fields = ("id", "created_at", "last_seen_at", "address", "user_agent", "current")
        read_only_fields = fields

    def get_current(self, session: UserSession) -> bool:
        """Whether it is the session that asks."""
        return session.pk == self.context.get("current")


class PasswordChangeSerializer(serializers.Serializer[Any]):
    """The password now, and the one to be."""

    current_password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )
    new_password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )


class EnrolmentSerializer(serializers.Serializer[Any]):
    """A new secret for an authenticator app. It is shown this once."""

    secret = serializers.CharField(help_text="Base32, to type in.")
    otpauth_uri = serializers.CharField(help_text="For a link on a phone.")
    qr_svg = serializers.CharField(help_text="The address as a QR code: an SVG document.")


class CodeSerializer(serializers.Serializer[Any]):
    """A code of the authenticator app; where there is a second factor, a recovery code too."""

    code = serializers.CharField(max_length=40)


class PasswordSerializer(serializers.Serializer[Any]):
    """The password of who is signed in, asked for again."""

    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )


class PasswordAndCodeSerializer(PasswordSerializer):
    """Both, for what takes a safeguard away."""

    code = serializers.CharField(
        max_length=40, help_text="Of the authenticator app, or a recovery code."
    )


class RecoveryCodesSerializer(serializers.Serializer[Any]):
    """Codes that stand in for the app, each of them once. They are shown this once."""

    recovery_codes = serializers.ListField(child=serializers.CharField())


class PasswordResetSerializer(serializers.Serializer[Any]):
    """Whose password."""

    email = serializers.EmailField(max_length=254)


class PasswordResetConfirmSerializer(serializers.Serializer[Any]):
    """The token behind `#` in the mail's link, and the new password."""

    token = serializers.CharField(max_length=256)
    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )

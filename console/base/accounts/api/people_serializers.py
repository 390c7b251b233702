"""JSON shapes of a person's sessions, password and second factor."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.base.accounts.api.serializers import PASSWORD_CHARS_MAX
from console.base.accounts.models import UserSession


class UserSessionSerializer(serializers.ModelSerializer[UserSession]):
    """A session of the person."""

    current = serializers.SerializerMethodField(
        help_text="Whether it is the session that makes the request."
    )

    class Meta:
        model = UserSession
        fields = ("id", "created_at", "last_seen_at", "address", "user_agent", "current")
        read_only_fields = fields

    def get_current(self, session: UserSession) -> bool:
        """Whether it is the session that makes the request."""
        return session.pk == self.context.get("current")


class PasswordChangeSerializer(serializers.Serializer[Any]):
    """The current password and the new one."""

    current_password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )
    new_password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )


class EnrolmentSerializer(serializers.Serializer[Any]):
    """A new secret for an authenticator app. It is shown only now."""

    secret = serializers.CharField(help_text="The secret in base32, to type in.")
    otpauth_uri = serializers.CharField(help_text="The secret as a link, to open on a phone.")
    qr_svg = serializers.CharField(help_text="The link as a QR code: an SVG document.")


class CodeSerializer(serializers.Serializer[Any]):
    """A code of the authenticator app, or a recovery code once the second factor is confirmed."""

    code = serializers.CharField(max_length=40)


class PasswordSerializer(serializers.Serializer[Any]):
    """The password of the signed-in person, given again."""

    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )


class PasswordAndCodeSerializer(PasswordSerializer):
    """The password and a code, for a change that makes the account less safe."""

    code = serializers.CharField(
        max_length=40, help_text="A code of the authenticator app, or a recovery code."
    )


class RecoveryCodesSerializer(serializers.Serializer[Any]):
    """Codes that each replace a code of the app once. They are shown only now."""

    recovery_codes = serializers.ListField(child=serializers.CharField())


class PasswordResetSerializer(serializers.Serializer[Any]):
    """The address of the account whose password is to be set."""

    email = serializers.EmailField(max_length=254)


class PasswordResetConfirmSerializer(serializers.Serializer[Any]):
    """The token behind `#` in the mail's link, and the new password."""

    token = serializers.CharField(max_length=256)
    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )

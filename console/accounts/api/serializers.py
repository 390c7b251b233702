"""JSON shapes of accounts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.accounts.choices import ROLES
from console.accounts.models import ApiKey
from console.accounts.models.api_key import NAME_CHARS_MAX
from console.common.actor import Role


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    """An API key, without its secret."""

    class Meta:
        model = ApiKey
        fields = ("id", "name", "role", "created_at", "expires_at", "last_used_at", "revoked_at")
        read_only_fields = fields


class ApiKeyCreatedSerializer(serializers.Serializer[Any]):
    """A new key with its secret, which is shown this once."""

    id = serializers.CharField(source="key.id")
    name = serializers.CharField(source="key.name")
    role = serializers.ChoiceField(source="key.role", choices=ROLES)
    created_at = serializers.DateTimeField(source="key.created_at")
    expires_at = serializers.DateTimeField(source="key.expires_at", allow_null=True)
    secret = serializers.CharField(help_text="The bearer token. It cannot be read again.")


class ApiKeyCreateSerializer(serializers.Serializer[Any]):
    """What a new key shall be."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX)
    role = serializers.ChoiceField(
        choices=ROLES,
        default=Role.ADMIN.value,
        help_text="At most the caller's own.",
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)

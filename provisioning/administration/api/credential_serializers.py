"""JSON shapes of Kafka clients' credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from console.base.common.api.lines import one_line
from provisioning.administration.api.topic_serializers import EffectSerializer
from provisioning.choices import CredentialRole, Mechanism
from provisioning.models import Credential
from provisioning.models.credential import NAME_CHARS_MAX

PASSWORD_CHARS_MIN = 16
PASSWORD_CHARS_MAX = 128
# The characters that every client's SASLprep (RFC 4013) leaves unchanged.
PASSWORD = re.compile(r"[!-~]+")
OVERLAP_S_DEFAULT = 24 * 3600
OVERLAP_S_MAX = 30 * 24 * 3600


class MechanismsField(serializers.ListField):
    """The SCRAM mechanisms that a credential can authenticate by."""

    child = serializers.CharField()


class CredentialSerializer(serializers.ModelSerializer[Credential]):
    """A credential, without its password."""

    # The context's `view` has `stored_mechanisms`: see `credentials.stored_mechanisms`.
    username = serializers.CharField()
    principal = serializers.CharField(help_text="For ACLs.")
    replaces = serializers.CharField(
        source="replaces_id", allow_null=True, help_text="The one in whose place it was made."
    )
    replaced_by = serializers.CharField(
        allow_null=True, help_text="The one that was made in its place."
    )
    last_used_at = serializers.DateTimeField(
        allow_null=True,
        help_text="The last minute in which it produced or fetched records, known some minutes "
        "later; signing in alone does not count. Null: never yet.",
    )

    mechanisms = serializers.SerializerMethodField(
        help_text="The SCRAM mechanisms that it can authenticate by; PLAIN works as well where a "
        "listener offers it. One that was made before the service stored both has one: rotate it. "
        "Null: the cell does not answer.",
    )

    class Meta:
        model = Credential
        fields = (
            "id",
            "name",
            "username",
            "principal",
            "role",
            "mechanism",
            "mechanisms",
            "generation",
            "created_at",
            "expires_at",
            "last_used_at",
            "replaces",
            "replaced_by",
        )
        read_only_fields = fields

    @extend_schema_field(MechanismsField(allow_null=True))
    def get_mechanisms(self, credential: Credential) -> list[str] | None:
        """What the cell has of its user; None where the cell does not answer."""
        stored: Mapping[str, list[str]] | None = self.context["view"].stored_mechanisms
        return None if stored is None else stored.get(credential.username, [])


class CredentialCreatedSerializer(serializers.Serializer[Any]):
    """A new credential with its password, which is shown this once."""

    id = serializers.CharField(source="credential.id")
    name = serializers.CharField(source="credential.name")
    username = serializers.CharField(source="credential.username")
    password = serializers.CharField(help_text="It cannot be read again.")
    mechanism = serializers.ChoiceField(
        source="credential.mechanism",
        choices=Mechanism.choices,
        help_text="The one that settings for clients name; either of both works, and PLAIN.",
    )
    mechanisms = MechanismsField(
        help_text="The SCRAM mechanisms that it can authenticate by: both."
    )
    principal = serializers.CharField(source="credential.principal")
    role = serializers.ChoiceField(source="credential.role", choices=CredentialRole.choices)
    generation = serializers.IntegerField(source="credential.generation")
    created_at = serializers.DateTimeField(source="credential.created_at")
    expires_at = serializers.DateTimeField(source="credential.expires_at", allow_null=True)
    replaces = serializers.CharField(
        source="credential.replaces_id",
        allow_null=True,
        help_text="The one in whose place it was made.",
    )
    status = EffectSerializer(source="effect")


def validate_password(password: str) -> None:
    """Refuses a password that has other characters than visible ASCII."""
    if not PASSWORD.fullmatch(password):
        message = "A password has visible ASCII characters only."
        raise serializers.ValidationError(message)


class PasswordSerializer(serializers.Serializer[Any]):
    """What a caller may choose of a new user."""

    password = serializers.CharField(
        required=False,
        write_only=True,
        trim_whitespace=False,
        min_length=PASSWORD_CHARS_MIN,
        max_length=PASSWORD_CHARS_MAX,
        validators=[validate_password],
        help_text="For tools that keep secrets themselves; without it, a random one is made.",
    )
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it ends by itself; null: never."
    )


class CredentialCreateSerializer(PasswordSerializer):
    """What a new credential shall be."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, validators=[one_line])
    role = serializers.ChoiceField(
        choices=CredentialRole.choices,
        help_text="Which ACLs it begins with: `none` has no rights until ACLs give some.",
    )
    mechanism = serializers.ChoiceField(
        choices=Mechanism.choices, default=Mechanism.SCRAM_SHA_512.value
    )


class CredentialUpdateSerializer(serializers.Serializer[Any]):
    """What changes. What is left out stays."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, required=False, validators=[one_line])
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it ends by itself; null: never."
    )


class RotateSerializer(PasswordSerializer):
    """How a credential is replaced. `password` and `expires_at` are of the new one."""

    overlap_s = serializers.IntegerField(
        default=OVERLAP_S_DEFAULT,
        min_value=0,
        max_value=OVERLAP_S_MAX,
        help_text="Seconds in which both authenticate.",
    )

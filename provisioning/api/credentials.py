"""Endpoints of Kafka clients' credentials."""

from __future__ import annotations

import re
from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from console.common.api.views import CreateAction, DestroyAction, ListAction, RetrieveAction
from provisioning.api import examples
from provisioning.api.bases import ClusterViewSet
from provisioning.api.topic_serializers import EffectSerializer
from provisioning.choices import CredentialRole, Mechanism
from provisioning.models import Credential
from provisioning.models.credential import NAME_CHARS_MAX
from provisioning.services import credentials


class CredentialSerializer(serializers.ModelSerializer[Credential]):
    """A credential, without its password."""

    username = serializers.CharField()
    principal = serializers.CharField(help_text="For ACLs.")

    class Meta:
        model = Credential
        fields = ("id", "name", "username", "principal", "role", "mechanism", "created_at")
        read_only_fields = fields


class CredentialCreatedSerializer(serializers.Serializer[Any]):
    """A new credential with its password, which is shown this once."""

    id = serializers.CharField(source="credential.id")
    name = serializers.CharField(source="credential.name")
    username = serializers.CharField(source="credential.username")
    password = serializers.CharField(help_text="It cannot be read again.")
    mechanism = serializers.ChoiceField(
        source="credential.mechanism",
        choices=Mechanism.choices,
        help_text="PLAIN works with it too.",
    )
    principal = serializers.CharField(source="credential.principal")
    role = serializers.ChoiceField(source="credential.role", choices=CredentialRole.choices)
    created_at = serializers.DateTimeField(source="credential.created_at")
    status = EffectSerializer(source="effect")


PASSWORD_CHARS_MIN = 16
PASSWORD_CHARS_MAX = 128
# What every client's SASLprep (RFC 4013) leaves as it is.
PASSWORD = re.compile(r"[!-~]+")


def validate_password(password: str) -> None:
    """A password of the caller's own choice: visible ASCII characters."""
    if not PASSWORD.fullmatch(password):
        message = "A password has visible ASCII characters only."
        raise serializers.ValidationError(message)


class CredentialCreateSerializer(serializers.Serializer[Any]):
    """What a new credential shall be."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX)
    role = serializers.ChoiceField(
        choices=CredentialRole.choices,
        help_text="Which ACLs it begins with: `none` has no rights until ACLs give some.",
    )
    mechanism = serializers.ChoiceField(
        choices=Mechanism.choices, default=Mechanism.SCRAM_SHA_512.value
    )
    password = serializers.CharField(
        required=False,
        write_only=True,
        trim_whitespace=False,
        min_length=PASSWORD_CHARS_MIN,
        max_length=PASSWORD_CHARS_MAX,
        validators=[validate_password],
        help_text="For tools that keep secrets themselves; without it, a random one is made.",
    )


class CredentialViewSet(ClusterViewSet, ListAction, RetrieveAction, CreateAction, DestroyAction):
    """Credentials of a cluster's Kafka clients. Deleting one closes its connections within 5 s."""

    queryset = Credential.objects.current()
    serializer_class = CredentialSerializer
    input_serializers = {"create": CredentialCreateSerializer}
    output_serializers = {"create": CredentialCreatedSerializer}
    validates = ()
    examples = examples.CREDENTIALS

    def get_queryset(self) -> Any:
        """Those of the cluster that the address names."""
        found = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return found
        return found.filter(cluster=self.cluster).select_related("cluster")

    def perform_create(self, data: dict[str, Any]) -> object:
        """A credential, and its password for this once."""
        return credentials.create_credential(
            actor=self.actor, cluster=self.cluster, validate_only=self.validate_only, **data
        )

    def perform_destroy(self, instance: Credential) -> Response | None:
        """Ends it. What could not be confirmed goes on, so the row's change is kept."""
        error = credentials.delete_credential(actor=self.actor, credential=instance)
        return None if error is None else self.refuse(error)

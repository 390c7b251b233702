"""JSON shapes of entries of access control lists, and of templates of them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from brokers.metadata_records import Acl
from console.base.common.api.kafka_names import KafkaNameField, KafkaPatternField
from provisioning.administration.acl_ids import acl_id
from provisioning.administration.acl_templates import TEMPLATES
from provisioning.administration.api.topic_serializers import EffectSerializer, one_or_items

BATCH_MAX = 500
CLUSTER_NAME = "kafka-cluster"
PRINCIPAL = r"^User:.+$"
RESOURCE_TYPES = ["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
PATTERN_TYPES = ["LITERAL", "PREFIXED"]
OPERATIONS = [
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
]
PERMISSIONS = ["ALLOW", "DENY"]


class NewAclSerializer(serializers.Serializer[Any]):
    """A new entry of the access control list."""

    principal = KafkaPatternField(PRINCIPAL, max_length=512, help_text="`User:<name>` or `User:*`.")
    resource_type = serializers.ChoiceField(choices=RESOURCE_TYPES)
    resource_name = KafkaNameField(
        max_length=512, help_text="A name, a prefix, `*`, or `kafka-cluster`."
    )
    pattern_type = serializers.ChoiceField(choices=PATTERN_TYPES, default="LITERAL")
    operation = serializers.ChoiceField(choices=OPERATIONS)
    permission = serializers.ChoiceField(choices=PERMISSIONS, default="ALLOW")
    host = KafkaNameField(max_length=256, default="*")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuses another name of the cluster as a resource than the one that Kafka has for it."""
        if attrs.get("resource_type") == "CLUSTER" and attrs.get("resource_name") != CLUSTER_NAME:
            message = f"The cluster as a resource is named {CLUSTER_NAME}."
            raise serializers.ValidationError({"resource_name": message})
        return attrs


class AclSerializer(serializers.Serializer[Any]):
    """An entry of the access control list. Its id is made of all of it."""

    id = serializers.SerializerMethodField()
    principal = serializers.CharField(help_text="`User:<name>` or `User:*`.")
    resource_type = serializers.ChoiceField(choices=RESOURCE_TYPES)
    resource_name = serializers.CharField()
    pattern_type = serializers.ChoiceField(choices=PATTERN_TYPES)
    operation = serializers.ChoiceField(choices=OPERATIONS)
    permission = serializers.ChoiceField(choices=PERMISSIONS)
    host = serializers.CharField()

    def get_id(self, entry: Acl) -> str:
        """The entry's id, which is the same for the same fields."""
        return acl_id(entry)

    def to_representation(self, instance: Acl) -> dict[str, Any]:
        """The entry as JSON. It is written out because lists are long and single fields slow."""
        return {
            "id": acl_id(instance),
            "principal": instance.principal,
            "resource_type": instance.resource_type,
            "resource_name": instance.resource_name,
            "pattern_type": instance.pattern_type,
            "operation": instance.operation,
            "permission": instance.permission,
            "host": instance.host,
        }


class AclCreatedSerializer(AclSerializer):
    """A new entry."""

    status = EffectSerializer()


class AclsCreatedSerializer(serializers.Serializer[Any]):
    """New entries."""

    items = AclCreatedSerializer(many=True)
    next_cursor = serializers.CharField(allow_null=True, help_text="Null: these are all.")


# One entry, or the page of several.
ACL_OR_ACLS_CREATED = PolymorphicProxySerializer(
    component_name="AclOrAclsCreated",
    serializers=[AclCreatedSerializer, AclsCreatedSerializer],
    resource_type_field_name=None,
)


class AclCreateSerializer(NewAclSerializer):
    """A new entry, or several as `items`."""

    principal = KafkaPatternField(PRINCIPAL, max_length=512, required=False)
    resource_type = serializers.ChoiceField(choices=RESOURCE_TYPES, required=False)
    resource_name = KafkaNameField(max_length=512, required=False)
    operation = serializers.ChoiceField(choices=OPERATIONS, required=False)
    items: Any = serializers.ListSerializer(
        child=NewAclSerializer(), required=False, max_length=BATCH_MAX
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuses a body that is neither one entry nor several as `items`."""
        fields = one_or_items(attrs, "principal", "resource_type", "resource_name", "operation")
        return fields if "items" in fields else super().validate(fields)


class AclBatchSerializer(serializers.Serializer[Any]):
    """New entries: all are added, or none."""

    items: Any = serializers.ListSerializer(
        child=NewAclSerializer(), allow_empty=False, max_length=BATCH_MAX
    )


class AclQuerySerializer(serializers.Serializer[Any]):
    """Fields that entries must have. Without any, all entries."""

    principal = KafkaNameField(required=False)
    resource_type = serializers.ChoiceField(choices=RESOURCE_TYPES, required=False)
    resource_name = KafkaNameField(required=False)
    pattern_type = serializers.ChoiceField(choices=PATTERN_TYPES, required=False)
    operation = serializers.ChoiceField(choices=OPERATIONS, required=False)
    permission = serializers.ChoiceField(choices=PERMISSIONS, required=False)
    host = KafkaNameField(required=False)


class AclListSerializer(serializers.Serializer[Any]):
    """Entries."""

    items = AclSerializer(many=True)


class ApplyTemplateSerializer(serializers.Serializer[Any]):
    """Which template, and what it is filled with."""

    template = serializers.ChoiceField(choices=sorted(TEMPLATES))
    principal = KafkaPatternField(PRINCIPAL, max_length=512)
    topic = KafkaNameField(max_length=249, help_text="A name, a prefix, or `*`.")
    pattern_type = serializers.ChoiceField(
        choices=PATTERN_TYPES, default="LITERAL", help_text="Of the topic's name."
    )
    group = KafkaNameField(
        max_length=512,
        required=False,
        help_text="`consumer`: the group; `streams`: the application id.",
    )
    transactional_id = KafkaNameField(max_length=512, required=False)


class TemplateEntrySerializer(serializers.Serializer[Any]):
    """One entry of a template."""

    resource_type = serializers.ChoiceField(choices=RESOURCE_TYPES)
    resource_name = serializers.CharField(
        source="name", help_text="The parameter that gives the name; left out without it."
    )
    pattern_type = serializers.CharField(allow_null=True, help_text="Null: as of the topic.")
    operation = serializers.ChoiceField(choices=OPERATIONS)


class AclTemplateSerializer(serializers.Serializer[Any]):
    """What an application of a kind needs."""

    template = serializers.CharField(source="name")
    description = serializers.CharField()
    needs = serializers.ListField(
        child=serializers.CharField(), help_text="Parameters beside principal and topic."
    )
    takes = serializers.ListField(
        child=serializers.CharField(), help_text="Parameters that may be given too."
    )
    entries = TemplateEntrySerializer(many=True)

"""JSON shapes of topics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from brokers.metadata_records import Partition, TopicConfig
from console.base.common.api.kafka_names import KafkaNameField
from console.base.common.api.whole import Int64Field
from provisioning.administration.api.message_serializers import (
    DAMAGE_REASONS,
    DAMAGE_REASONS_TEXT,
)
from provisioning.administration.services.damage import REPORTED
from provisioning.administration.services.topics import ShownTopic
from provisioning.clusters.api.cluster_serializers import ConditionSerializer

ITEMS_MAX = 100
PARTITIONS_MAX = 2**31 - 1
# Brokers refuse more with INVALID_REPLICATION_FACTOR.
REPLICATION_FACTOR_MAX = 3
# A process remembers the text of so many moments.
MOMENTS_MAX = 50_000


class ConfigValueField(KafkaNameField):
    """A config's value: text, as Kafka has it; numbers and booleans are written as Kafka does."""

    def to_internal_value(self, data: Any) -> str:
        """The value as text; a boolean as Kafka writes it, `true` or `false`."""
        if isinstance(data, bool):
            return "true" if data else "false"
        return super().to_internal_value(data)


class ConfigDetailSerializer(serializers.Serializer[Any]):
    """A config of a topic, with where its value comes from."""

    name = serializers.CharField()
    value = serializers.CharField(allow_null=True)
    default = serializers.CharField(
        allow_null=True, help_text="What holds if the topic does not set it."
    )
    source = serializers.CharField(  # type: ignore[assignment]
        help_text="Kafka's name, such as DYNAMIC_TOPIC_CONFIG."
    )
    is_default = serializers.BooleanField()
    type = serializers.CharField()
    documentation = serializers.CharField()


class TopicStatusSerializer(serializers.Serializer[Any]):
    """Whether brokers serve a topic, or when they will."""

    partitions_led = serializers.IntegerField(source="topic.partitions_led")
    conditions = ConditionSerializer(many=True)


class TopicSerializer(serializers.Serializer[Any]):
    """A topic."""

    name = serializers.CharField(source="topic.name")
    id = serializers.CharField(source="topic.id", help_text="As Kafka writes it.")
    partitions = serializers.IntegerField(source="topic.partitions")
    replication_factor = serializers.IntegerField(
        source="topic.replication_factor", help_text="Reported as asked for; storage is durable."
    )
    internal = serializers.BooleanField(source="topic.internal")
    created_at = serializers.DateTimeField()
    configs = serializers.DictField(
        source="topic.configs", child=serializers.CharField(), help_text="What is set."
    )
    config_details = ConfigDetailSerializer(
        many=True, source="details", allow_null=True, help_text="Every config; null in short lists."
    )
    status = TopicStatusSerializer(source="*")

    def to_representation(self, instance: ShownTopic) -> dict[str, Any]:
        """The topic as JSON. It is written out because an answer may have a thousand topics."""
        topic, details = instance.topic, instance.details
        return {
            "name": topic.name,
            "id": topic.id,
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "internal": topic.internal,
            "created_at": moment_of(topic.created_at_ms),
            "configs": dict(topic.configs),
            "config_details": None
            if details is None
            else [detail_of(detail) for detail in details],
            "status": {
                "partitions_led": topic.partitions_led,
                "conditions": list(instance.conditions),
            },
        }


class TopicsCreatedSerializer(serializers.Serializer[Any]):
    """New topics."""

    items = TopicSerializer(many=True)
    next_cursor = serializers.CharField(allow_null=True, help_text="Null: these are all.")


# One topic, or the page of several.
TOPIC_OR_TOPICS = PolymorphicProxySerializer(
    component_name="TopicOrTopicsCreated",
    serializers=[TopicSerializer, TopicsCreatedSerializer],
    resource_type_field_name=None,
)


class TopicUpdateSerializer(serializers.Serializer[Any]):
    """Configs that change; null goes back to the default, what is left out stays."""

    configs = serializers.DictField(child=ConfigValueField(allow_null=True, allow_blank=True))


class NewTopicSerializer(serializers.Serializer[Any]):
    """What a new topic shall be."""

    name = KafkaNameField(max_length=249)
    partitions = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=PARTITIONS_MAX,
        help_text="Without it, the cluster's default.",
    )
    replication_factor = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=REPLICATION_FACTOR_MAX,
        help_text="Only reported: storage is durable. Without it, the cluster's default.",
    )
    configs = serializers.DictField(
        child=ConfigValueField(allow_blank=True), required=False, default=dict
    )


class TopicCreateSerializer(NewTopicSerializer):
    """A new topic, or several as `items`."""

    name = KafkaNameField(max_length=249, required=False)
    items: Any = serializers.ListSerializer(
        child=NewTopicSerializer(), required=False, max_length=ITEMS_MAX
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuses a body that is neither one topic nor several, and a name twice in `items`."""
        names: set[str] = set()
        for place, item in enumerate(attrs.get("items", [])):
            if item["name"] in names:
                # Each alone is valid: without this the first would exist before the second fails.
                message = "Another item has this name."
                raise serializers.ValidationError({"items": {str(place): {"name": message}}})
            names.add(item["name"])
        return one_or_items(attrs, "name")


class PartitionsSerializer(serializers.Serializer[Any]):
    """How many partitions a topic shall have."""

    count = serializers.IntegerField(min_value=1, max_value=PARTITIONS_MAX)


@dataclass(frozen=True)
class ShownPartition:
    """A partition as the API shows it: what the metadata store says, and damage that is known."""

    facts: Partition
    damaged_first_offset: int | None


class PartitionSerializer(serializers.Serializer[Any]):
    """A partition. `leader` is null while no broker leads it."""

    partition = serializers.IntegerField(source="facts.partition")
    leader = serializers.IntegerField(source="facts.leader", allow_null=True)
    leader_epoch = serializers.IntegerField(source="facts.leader_epoch")
    damaged_first_offset = Int64Field(
        allow_null=True,
        help_text="Where the lowest damaged batch begins that brokers know of; null: they know of "
        "none. As the keeper reported it some seconds ago.",
    )


class RecordsBeforeSerializer(serializers.Serializer[Any]):
    """What of a partition goes."""

    partition = serializers.IntegerField(min_value=0, max_value=PARTITIONS_MAX)
    before_offset = Int64Field(min_value=-1, help_text="Records before it go; −1: all.")


class DeleteRecordsSerializer(serializers.Serializer[Any]):
    """Which records of a topic go."""

    partitions: Any = serializers.ListSerializer(
        child=RecordsBeforeSerializer(), allow_empty=False, max_length=1_000
    )


class DeleteRecordsQuerySerializer(serializers.Serializer[Any]):
    """What to do about a sleeping cluster."""

    wake = serializers.BooleanField(
        default=False, help_text="Wake a sleeping cluster; otherwise 409 `cluster_asleep`."
    )


class LowWatermarkSerializer(serializers.Serializer[Any]):
    """Where a partition begins now."""

    partition = serializers.IntegerField()
    low_watermark = Int64Field()
    deleted_offsets = Int64Field(help_text="How many offsets this took: as many records at most.")


class RecordsDeletedSerializer(serializers.Serializer[Any]):
    """Where partitions begin now."""

    items = LowWatermarkSerializer(many=True)


class SkipDamagedSerializer(serializers.Serializer[Any]):
    """Which damaged batch is to be skipped."""

    partition = serializers.IntegerField(min_value=0, max_value=PARTITIONS_MAX)
    first_offset = Int64Field(
        min_value=0,
        help_text="Where the batch begins, as `damaged` of a page of messages has it.",
    )
    confirm = serializers.BooleanField(
        default=False, help_text="Delete. Without it, only say what would be deleted."
    )


class SkippedBatchSerializer(serializers.Serializer[Any]):
    """A damaged batch, and what is deleted with it."""

    partition = serializers.IntegerField()
    first_offset = Int64Field()
    next_offset = Int64Field(help_text="Where the partition begins afterwards.")
    reason = serializers.ChoiceField(
        choices=[*DAMAGE_REASONS, REPORTED],
        help_text=f"{DAMAGE_REASONS_TEXT} `reported`: brokers know that it is damaged.",
    )
    log_start = Int64Field(help_text="Where the partition began before.")
    records_before = Int64Field(
        help_text="Offsets before the batch that are deleted too: as many good records at most."
    )
    skipped = serializers.BooleanField(help_text="Whether the records were deleted.")


class TopicListQuerySerializer(serializers.Serializer[Any]):
    """How topics are listed."""

    view = serializers.ChoiceField(
        choices=["basic", "full"],
        default="basic",
        help_text="`full` has every config with its value, default and source.",
    )
    internal = serializers.BooleanField(default=False, help_text="Kafka's own topics too.")
    name_contains = serializers.CharField(required=False)


class EffectSerializer(serializers.Serializer[Any]):
    """Whether brokers have what was made, or when they will."""

    conditions = ConditionSerializer(many=True)


@lru_cache(maxsize=MOMENTS_MAX)
def moment_of(created_at_ms: int) -> str:
    """A moment as JSON. It is cached because a topic's never changes and lists are read often."""
    return datetime.fromtimestamp(created_at_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def detail_of(entry: TopicConfig) -> dict[str, Any]:
    """A config as JSON. `asdict` would copy every value and take ten times as long."""
    return {
        "name": entry.name,
        "value": entry.value,
        "default": entry.default,
        "source": entry.source,
        "is_default": entry.is_default,
        "type": entry.type,
        "documentation": entry.documentation,
    }


def one_or_items(attrs: dict[str, Any], *required: str) -> dict[str, Any]:
    """The body, where it has either all `required` members or `items`.

    Raises `serializers.ValidationError` where it has both or neither.
    """
    if "items" in attrs:
        if any(name in attrs for name in required):
            message = "Give either one or `items`."
            raise serializers.ValidationError({"items": message})
        return attrs
    missing = {name: "This field is required." for name in required if name not in attrs}
    if missing:
        raise serializers.ValidationError(missing, code="required")
    return attrs

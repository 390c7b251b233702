"""Endpoints of consumer groups."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common.api.kafka_names import KafkaNameField
from console.base.common.api.pagination import page_of_names
from console.base.common.api.whole import Int64Field, as_text
from console.base.common.clock import unix_ms
from provisioning import kafka
from provisioning.administration.services import groups
from provisioning.administration.services.groups import SeenGroup
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import ClusterViewSet

# Kafka numbers partitions with an int32.
PARTITION_MAX = 2**31 - 1
# The members of a group's JSON; `provisioning.kafka` and samples of the keeper have the same names.
SHOWN = ("group", "state", "type", "protocol", "members", "lag", "lag_seconds")
TARGETS = ["earliest", "latest", "offset", "timestamp", "shift"]


class AssignmentSerializer(serializers.Serializer[Any]):
    """A partition that a member has."""

    topic = serializers.CharField()
    partition = serializers.IntegerField()


class GroupMemberSerializer(serializers.Serializer[Any]):
    """A member of a group."""

    member_id = serializers.CharField()
    client_id = serializers.CharField()
    host = serializers.CharField()
    instance_id = serializers.CharField(allow_null=True, help_text="A static member's own name.")
    assignments = AssignmentSerializer(many=True)
    truncated = serializers.BooleanField(help_text="Whether it has more partitions than are shown.")


class GroupPartitionSerializer(serializers.Serializer[Any]):
    """What a group committed of a partition. What is unknown is null."""

    topic = serializers.CharField()
    partition = serializers.IntegerField()
    committed = Int64Field(allow_null=True)
    end = Int64Field(allow_null=True)
    lag = Int64Field(allow_null=True, help_text="Records.")
    lag_seconds = serializers.FloatField(
        allow_null=True, help_text="Age of the first record that is not committed."
    )


class GroupSerializer(serializers.Serializer[Any]):
    """A consumer group."""

    group = serializers.CharField(source="group.group")
    state = serializers.CharField(source="group.state", help_text="Kafka's name of it.")
    type = serializers.CharField(source="group.type", help_text="classic or consumer.")
    protocol_type = serializers.CharField(
        source="group.protocol_type",
        help_text="Such as consumer or connect; empty where nobody ever joined it, and of a "
        "sleeping cluster where it is not known. Partitions of members are shown of consumers.",
    )
    protocol = serializers.CharField(source="group.protocol", help_text="The assignor.")
    members = GroupMemberSerializer(many=True, source="group.members")
    partitions = GroupPartitionSerializer(many=True, source="group.partitions")
    lag = Int64Field(source="group.lag", allow_null=True, help_text="Records.")
    lag_seconds = serializers.FloatField(
        source="group.lag_seconds", allow_null=True, help_text="The greatest of its partitions'."
    )
    sampled_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was seen, of a sleeping cluster; null: at this moment."
    )

    def to_representation(self, instance: SeenGroup) -> dict[str, Any]:
        """The group as JSON. It is written out because a page of groups has thousands of fields."""
        group, at = instance.group, instance.sampled_at
        shown = as_text({name: group[name] for name in SHOWN}, "lag")
        partitions = [as_text(dict(one), "committed", "end", "lag") for one in group["partitions"]]
        return shown | {
            # A sample of an earlier release has none.
            "protocol_type": group.get("protocol_type", ""),
            "partitions": partitions,
            "sampled_at": None if at is None else at.isoformat().replace("+00:00", "Z"),
        }


class ResetPartitionSerializer(serializers.Serializer[Any]):
    """Partitions of a topic."""

    topic = KafkaNameField()
    partitions = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=PARTITION_MAX),
        required=False,
        help_text="Without it, all.",
    )


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": TARGETS},
            {
                "type": "object",
                "required": ["group"],
                "properties": {"group": {"type": "string"}},
                "description": "Where another group stands.",
            },
        ]
    }
)
class TargetField(serializers.Field[Any, Any, Any, Any]):
    """A kind of target, or `{"group": …}`."""

    def to_internal_value(self, data: Any) -> str | dict[str, str]:
        """A name of `TARGETS`, or `{"group": name}`."""
        if isinstance(data, str) and data in TARGETS:
            return data
        if isinstance(data, dict) and set(data) == {"group"}:
            group = data["group"]
            if isinstance(group, str) and group and "\0" not in group:
                return {"group": group}
        message = f'One of {", ".join(TARGETS)}, or {{"group": …}} is expected.'
        raise serializers.ValidationError(message)


class ResetSerializer(serializers.Serializer[Any]):
    """Where a group's offsets shall go."""

    to = TargetField(help_text="Other members of the body belong to some of these.")
    offset = Int64Field(required=False, min_value=0, help_text="With `to: offset`.")
    timestamp = serializers.DateTimeField(required=False, help_text="With `to: timestamp`.")
    shift = Int64Field(required=False, help_text="Records, with `to: shift`.")
    topics = ResetPartitionSerializer(
        many=True, required=False, help_text="Without it, all that the group committed."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Give the plan, change nothing.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuses a target without the member that it needs, such as `offset` for `to: offset`."""
        to = attrs["to"]
        if isinstance(to, str) and to in {"offset", "timestamp", "shift"} and to not in attrs:
            raise serializers.ValidationError({to: "This field is required."}, code="required")
        return attrs


class PlannedOffsetSerializer(serializers.Serializer[Any]):
    """One partition of a plan."""

    topic = serializers.CharField()
    partition = serializers.IntegerField()
    current = Int64Field(allow_null=True)
    target = Int64Field()
    lag_after = Int64Field()


class ResetPlanSerializer(serializers.Serializer[Any]):
    """What was done, or with `dry_run` what would be."""

    dry_run = serializers.BooleanField()
    items = PlannedOffsetSerializer(many=True)


class GroupWakeQuerySerializer(serializers.Serializer[Any]):
    """What to do about a sleeping cluster."""

    wake = serializers.BooleanField(
        default=False, help_text="Wake a sleeping cluster; otherwise 409 `cluster_asleep`."
    )


class GroupViewSet(ClusterViewSet):
    """Consumer groups: of running brokers as they are, of a sleeping cluster as last seen."""

    serializer_class = GroupSerializer
    input_serializers = {"reset_offsets": ResetSerializer}
    query_serializers = {
        "reset_offsets": GroupWakeQuerySerializer,
        "destroy": GroupWakeQuerySerializer,
    }
    responses = {"reset_offsets": {200: ResetPlanSerializer}}
    examples = examples.GROUPS

    def list(self, request: Request, **kwargs: Any) -> Response:
        """Groups by name, with members and lag."""
        all_groups = groups.Groups(self.cluster)
        page, cursor = page_of_names(request, all_groups.names)
        items = GroupSerializer(all_groups.describe(page), many=True).data
        return Response({"items": items, "next_cursor": cursor})

    def retrieve(self, request: Request, group: str, **kwargs: Any) -> Response:
        """One group, with members and lag by partition."""
        return self.answer(groups.get_group(cluster=self.cluster, group=group))

    def destroy(self, request: Request, group: str, **kwargs: Any) -> Response:
        """Deletes a group with what it committed. It must be empty."""
        groups.delete_group(
            actor=self.actor, cluster=self.cluster, group=group, wake=self.query()["wake"]
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    def reset_offsets(self, request: Request, group: str, **kwargs: Any) -> Response:
        """Moves the group's offsets, or with `dry_run` shows where. The group must be empty."""
        data = self.validated_input()
        topics = data.get("topics")
        plan = groups.reset_offsets(
            actor=self.actor,
            cluster=self.cluster,
            group=group,
            target=target_of(data),
            partitions=None
            if topics is None
            else {topic["topic"]: topic.get("partitions") for topic in topics},
            dry_run=data["dry_run"],
            wake=self.query()["wake"],
        )
        items = PlannedOffsetSerializer(plan, many=True).data
        return Response({"dry_run": data["dry_run"], "items": items})


def target_of(data: dict[str, Any]) -> kafka.Target:
    """Where a validated request moves offsets to; a moment in Unix ms."""
    if isinstance(data["to"], dict):
        return kafka.Target("group", group=data["to"]["group"])
    value = data.get(data["to"], 0)
    if isinstance(value, datetime):
        value = unix_ms(value)
    return kafka.Target(data["to"], value)

"""Endpoints of topics that were deleted, or that a restored backup did not know."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from brokers.metadata_records import DeletedTopic, OrphanedTopic
from console.base.common.api.kafka_names import KafkaNameField
from provisioning.administration.api.topic_serializers import TopicSerializer
from provisioning.administration.services import deleted_topics
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import WHOLE_LIST_MAX, ClusterViewSet


class DeletedTopicSerializer(serializers.Serializer[Any]):
    """A topic that can be restored. It counts for nothing meanwhile."""

    id = serializers.CharField(help_text="As Kafka writes it.")
    name = serializers.CharField()
    partitions = serializers.IntegerField()
    deleted_at = serializers.SerializerMethodField()
    restorable_until = serializers.SerializerMethodField()

    def get_deleted_at(self, topic: DeletedTopic) -> datetime:
        """When it was deleted."""
        return moment(topic.deleted_at_ms)

    def get_restorable_until(self, topic: DeletedTopic) -> datetime:
        """When its records are removed for good."""
        return moment(topic.restorable_until_ms)


class OrphanedTopicSerializer(serializers.Serializer[Any]):
    """A topic on storage that the metadata does not know. It is kept."""

    id = serializers.CharField(help_text="As Kafka writes it.")
    name = serializers.CharField(allow_null=True, help_text="Null where storage does not have it.")
    partitions = serializers.IntegerField(help_text="How many storage has.")
    found_at = serializers.SerializerMethodField()

    def get_found_at(self, topic: OrphanedTopic) -> datetime:
        """When a broker first saw it on storage."""
        return moment(topic.found_at_ms)


class NewNameSerializer(serializers.Serializer[Any]):
    """Under which name it comes back."""

    name = KafkaNameField(
        max_length=249, required=False, help_text="Another name, where its own was taken meanwhile."
    )


class PurgeQuerySerializer(serializers.Serializer[Any]):
    """What confirms that records go for good."""

    name = KafkaNameField(required=False, help_text="The topic's name, to confirm.")


class DeletedTopicViewSet(ClusterViewSet):
    """Topics that were deleted and can be restored, by REST or by Kafka's tools."""

    serializer_class = DeletedTopicSerializer
    input_serializers = {"undelete": NewNameSerializer}
    output_serializers = {"undelete": TopicSerializer}
    query_serializers = {"destroy": PurgeQuerySerializer}
    validates = ("undelete",)
    examples = examples.DELETED_TOPICS
    limit_max = WHOLE_LIST_MAX

    def list(self, request: Request, **kwargs: Any) -> Response:
        """All of them, by id."""
        topics = deleted_topics.list_deleted_topics(cluster=self.cluster)
        return self.page(topics, key=lambda topic: topic.id)

    def retrieve(self, request: Request, topic: str, **kwargs: Any) -> Response:
        """One of them."""
        return self.answer(deleted_topics.get_deleted_topic(cluster=self.cluster, topic=topic))

    def undelete(self, request: Request, topic: str, **kwargs: Any) -> Response:
        """Brings it back with its records, configs and id. 409 `name_taken`: give another name."""
        name = self.validated_input().get("name")
        return self.answer(
            deleted_topics.undelete_topic(
                actor=self.actor,
                cluster=self.cluster,
                topic=topic,
                name=name,
                validate_only=self.validate_only,
            )
        )

    def destroy(self, request: Request, topic: str, **kwargs: Any) -> Response:
        """Gives it up now: its records go. Needs its name, to confirm."""
        name = self.query().get("name")
        deleted_topics.purge_topic(actor=self.actor, cluster=self.cluster, topic=topic, name=name)
        return Response(status=status.HTTP_204_NO_CONTENT)


class OrphanedTopicViewSet(ClusterViewSet):
    """Topics on storage that the metadata did not know when it came back from a backup."""

    serializer_class = OrphanedTopicSerializer
    input_serializers = {"attach": NewNameSerializer}
    output_serializers = {"attach": TopicSerializer}
    validates = ("attach",)
    examples = examples.ORPHANED_TOPICS
    limit_max = WHOLE_LIST_MAX

    def list(self, request: Request, **kwargs: Any) -> Response:
        """All of them, by id."""
        topics = deleted_topics.list_orphaned_topics(cluster=self.cluster)
        return self.page(topics, key=lambda topic: topic.id)

    def attach(self, request: Request, topic: str, **kwargs: Any) -> Response:
        """Makes it one of the cluster's topics again, with its id and records."""
        name = self.validated_input().get("name")
        return self.answer(
            deleted_topics.attach_topic(
                actor=self.actor,
                cluster=self.cluster,
                topic=topic,
                name=name,
                validate_only=self.validate_only,
            )
        )


def moment(unix_ms: int) -> datetime:
    """Unix milliseconds, as the metadata has them, as a `datetime` in UTC."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC)

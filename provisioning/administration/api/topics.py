"""Endpoints of topics. None of them wakes the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common.api import etags
from console.base.common.api.pagination import LIMIT_MAX
from provisioning.administration.api import topic_serializers as shapes
from provisioning.administration.services import damage, topics
from provisioning.cells import cluster_store, metadata_errors
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import WHOLE_LIST_MAX, ClusterViewSet
from provisioning.clusters.services.damage import reported_damage


class TopicViewSet(ClusterViewSet):
    """Topics of a cluster, whether it sleeps or runs."""

    serializer_class = shapes.TopicSerializer
    input_serializers = {
        "create": shapes.TopicCreateSerializer,
        "partial_update": shapes.TopicUpdateSerializer,
        "add_partitions": shapes.PartitionsSerializer,
        "delete_records": shapes.DeleteRecordsSerializer,
        "skip_damaged": shapes.SkipDamagedSerializer,
    }
    output_serializers = {"list_partitions": shapes.PartitionSerializer}
    query_serializers = {
        "list": shapes.TopicListQuerySerializer,
        "delete_records": shapes.DeleteRecordsQuerySerializer,
        "skip_damaged": shapes.DeleteRecordsQuerySerializer,
    }
    responses = {
        "create": {201: shapes.TOPIC_OR_TOPICS},
        "delete_records": {200: shapes.RecordsDeletedSerializer},
        "skip_damaged": {200: shapes.SkippedBatchSerializer},
    }
    validates = ("create", "partial_update", "destroy", "add_partitions", "delete_records")
    lists = ("list_partitions",)
    examples = examples.TOPICS
    limit_max = WHOLE_LIST_MAX

    def list(self, request: Request, **kwargs: Any) -> Response:
        """Topics by name. `limit` may be up to 2000: all of them cost one read.

        With every config (`view=full`) a page has 200 topics at most.
        """
        query = self.query()
        matches = topics.list_topics(cluster=self.cluster, internal=query["internal"])
        part = query.get("name_contains", "")
        matches = [shown for shown in matches if part in shown.topic.name]
        if query["view"] == "basic":
            return self.page(matches, key=_name_of)
        return self.page(
            matches,
            key=_name_of,
            page_max=LIMIT_MAX,
            complete=lambda page: topics.with_configs(cluster=self.cluster, shown=page),
        )

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Creates a topic, or several as `items`.

        On a running cluster brokers serve it when this returns, or its condition says when.
        """
        data = self.validated_input()
        if "items" in data:
            return self._create_several(data["items"])
        shown = topics.create_topic(
            actor=self.actor,
            cluster=self.cluster,
            new_topic=topics.NewTopic(**data),
            validate_only=self.validate_only,
        )
        if self.validate_only:
            return Response({"valid": True, **self._shown(shown)})
        place = {"Location": f"{self.request.path}/{shown.topic.name}"}
        return self.answer(shown, status=status.HTTP_201_CREATED, headers=place)

    def retrieve(self, request: Request, name: str, **kwargs: Any) -> Response:
        """A topic with every config."""
        return self.answer(topics.get_topic(cluster=self.cluster, name=name))

    def partial_update(self, request: Request, name: str, **kwargs: Any) -> Response:
        """Changes configs."""
        self._hold(name)
        shown = topics.update_topic(
            actor=self.actor,
            cluster=self.cluster,
            name=name,
            configs=self.validated_input()["configs"],
            validate_only=self.validate_only,
        )
        return self.answer(shown)

    def destroy(self, request: Request, name: str, **kwargs: Any) -> Response:
        """Deletes a topic. It can be restored from `deleted-topics` for seven days."""
        self._hold(name)
        if self.validate_only:
            topics.get_topic(cluster=self.cluster, name=name, full=False)
            return Response({"valid": True})
        topics.delete_topic(actor=self.actor, cluster=self.cluster, name=name)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def list_partitions(self, request: Request, name: str, **kwargs: Any) -> Response:
        """Partitions of a topic, with their leaders."""
        with metadata_errors():
            store = cluster_store(self.cluster.pk)
            topic_id, partitions = store.topic(name).id, store.partitions(name)
        damaged = reported_damage(cluster=self.cluster, topic=name, topic_id=topic_id)
        shown = [shapes.ShownPartition(facts, damaged.get(facts.partition)) for facts in partitions]
        return self.page(shown, key=lambda item: f"{item.facts.partition:010}")

    def add_partitions(self, request: Request, name: str, **kwargs: Any) -> Response:
        """Raises the number of partitions; it cannot go down."""
        self._hold(name)
        return self.answer(
            topics.add_partitions(
                actor=self.actor,
                cluster=self.cluster,
                name=name,
                count=self.validated_input()["count"],
                validate_only=self.validate_only,
            )
        )

    def delete_records(self, request: Request, name: str, **kwargs: Any) -> Response:
        """Deletes the oldest records of partitions, before an offset of each.

        With `validate_only` it returns what would be deleted.
        """
        partitions = self.validated_input()["partitions"]
        marks = topics.delete_records(
            actor=self.actor,
            cluster=self.cluster,
            name=name,
            before={item["partition"]: item["before_offset"] for item in partitions},
            wake=self.query()["wake"],
            validate_only=self.validate_only,
        )
        return Response({"items": shapes.LowWatermarkSerializer(marks, many=True).data})

    def skip_damaged(self, request: Request, name: str, **kwargs: Any) -> Response:
        """Deletes a partition's records up to the end of a damaged batch.

        Without `confirm` it says how many good records before the batch would be deleted too, and
        changes nothing. 409 `not_damaged` where no damaged batch begins at the offset any more.
        """
        batch = damage.skip_damaged(
            actor=self.actor,
            cluster=self.cluster,
            name=name,
            **self.validated_input(),
            wake=self.query()["wake"],
        )
        return Response(shapes.SkippedBatchSerializer(batch).data)

    def _hold(self, name: str) -> None:
        """Makes other requests that change the topic wait, and checks the `If-Match` header.

        A change that Kafka's tools make after the check is not noticed.
        """
        topics.hold_topic(cluster=self.cluster, name=name)
        if "If-Match" in self.request.headers:
            current = topics.get_topic(cluster=self.cluster, name=name, full=False)
            etags.check_if_match(self.request, current)

    def _create_several(self, items: Sequence[dict[str, Any]]) -> Response:
        """Creates several topics; all are checked before the first is made."""
        created = topics.create_topics(
            actor=self.actor,
            cluster=self.cluster,
            new_topics=[topics.NewTopic(**item) for item in items],
            validate_only=self.validate_only,
        )
        data = [self._shown(topic) for topic in created]
        page = {"items": data, "next_cursor": None}
        if self.validate_only:
            return Response({"valid": True, **page})
        return Response(page, status=status.HTTP_201_CREATED)

    @staticmethod
    def _shown(shown: topics.ShownTopic) -> dict[str, Any]:
        return dict(shapes.TopicSerializer(shown).data)


def _name_of(shown: topics.ShownTopic) -> str:
    return shown.topic.name

"""Topics of a side."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic

from tests.bench.sides import Side

# Kafka takes its time for thousands of partitions.
CREATE_SECONDS = 300


def create_topic(
    side: Side, topic: str, partitions: int, config: Mapping[str, str] | None = None
) -> None:
    """Creates a topic, replicated as the side does it."""
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    new = NewTopic(topic, partitions, side.replication, config=dict(config or {}))
    outcomes = admin.create_topics(
        [new], operation_timeout=CREATE_SECONDS, request_timeout=CREATE_SECONDS
    )
    for outcome in outcomes.values():
        outcome.result()

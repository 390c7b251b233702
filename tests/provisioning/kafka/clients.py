"""Plain clients (librdkafka) of the brokers that our own client reaches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from provisioning.kafka import Access, Connection

LIMIT_S = 60


def settings(connection: Connection) -> dict[str, object]:
    """librdkafka's settings for any client on a connection."""
    return {
        "bootstrap.servers": connection.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": connection.mechanism,
        "sasl.username": connection.username,
        "sasl.password": connection.password,
        "log_level": 0,
    }


@contextmanager
def admin_of(connection: Connection) -> Iterator[AdminClient]:
    """An admin client, which is kept until the end of the block."""
    yield AdminClient(settings(connection))


def create_topic(access: Access, topic: str, partitions: int, **config: str) -> str:
    """Creates a topic. Returns its name."""
    with admin_of(access.connection) as admin:
        admin.create_topics([NewTopic(topic, partitions, config=config)])[topic].result(LIMIT_S)
    return topic


def delete_topic(access: Access, topic: str) -> None:
    """Deletes a topic."""
    with admin_of(access.connection) as admin:
        admin.delete_topics([topic])[topic].result(LIMIT_S)


def topic_names(access: Access) -> set[str]:
    """The names of all topics."""
    with admin_of(access.connection) as admin:
        return set(admin.list_topics(timeout=LIMIT_S).topics)


def produce_records(
    access: Access, topic: str, records: Iterable[tuple[int, bytes, int]], **more: object
) -> None:
    """Produces records from triples `(partition, value, timestamp_ms)`."""
    producer = Producer(settings(access.connection) | more)
    errors: list[object] = []
    for partition, value, timestamp_ms in records:
        producer.produce(
            topic,
            value,
            partition=partition,
            timestamp=timestamp_ms,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(LIMIT_S) == 0
    assert [error for error in errors if error] == []


def commit(access: Access, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commits offsets with the admin protocol, as for a group without members."""
    partitions = [TopicPartition(topic, number, at) for (topic, number), at in offsets.items()]
    request = ConsumerGroupTopicPartitions(group, partitions)
    with admin_of(access.connection) as admin:
        answer = admin.alter_consumer_group_offsets([request])[group].result(LIMIT_S)
    assert [entry.error for entry in answer.topic_partitions if entry.error] == []

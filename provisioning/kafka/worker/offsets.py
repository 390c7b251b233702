"""Looks up offsets of partitions: the first one, the next one, and that of a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from provisioning.kafka.errors import UnavailableError, UnknownPartitionError
from provisioning.kafka.shapes import TIMEOUT_S, Partition
from provisioning.kafka.worker.clients import KafkaClients
from provisioning.kafka.worker.errors import error_of, kafka_errors

# librdkafka's error where it knows no leader of a partition.
NO_LEADER = "_NOENT"


def earliest_offsets(
    admin: AdminClient, partitions: Iterable[Partition], timeout_s: float
) -> dict[Partition, int]:
    """The first offset of each partition that retention has kept."""
    return _list_offsets(admin, dict.fromkeys(partitions, OffsetSpec.earliest()), timeout_s)


def end_offsets(
    admin: AdminClient, partitions: Iterable[Partition], timeout_s: float
) -> dict[Partition, int]:
    """The offset of the next record of each partition (its high watermark)."""
    return _list_offsets(admin, dict.fromkeys(partitions, OffsetSpec.latest()), timeout_s)


def offsets_at(
    admin: AdminClient, partitions: Iterable[Partition], timestamp_ms: int, timeout_s: float
) -> dict[Partition, int | None]:
    """The offset of the first record at or after a moment, by partition; None where none is."""
    spec = OffsetSpec.for_timestamp(timestamp_ms)
    offsets = _list_offsets(admin, dict.fromkeys(partitions, spec), timeout_s)
    return {partition: None if offset < 0 else offset for partition, offset in offsets.items()}


def end_offset(access: KafkaClients, topic: str, partition: int) -> int:
    """The offset of the next record of a partition. Raises `UnknownPartitionError`."""
    with access.admin() as admin:
        return end_offsets(admin, [(topic, partition)], TIMEOUT_S)[topic, partition]


def partitions_of(admin: AdminClient, topic: str, timeout_s: float) -> list[int]:
    """The numbers of a topic's partitions. Raises `UnknownPartitionError`."""
    with kafka_errors():
        # All topics are listed, because a request for one by name could create it.
        known = admin.list_topics(timeout=timeout_s).topics.get(topic)
    if known is None or known.error is not None or not known.partitions:
        detail = f"This server does not host this topic: {topic}"
        raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
    return sorted(known.partitions)


def _list_offsets(
    admin: AdminClient, specs: Mapping[Partition, Any], timeout_s: float
) -> dict[Partition, int]:
    if not specs:
        return {}
    requests = {TopicPartition(topic, number): spec for (topic, number), spec in specs.items()}
    try:
        with kafka_errors():
            futures = admin.list_offsets(requests, request_timeout=timeout_s)
            return {(tp.topic, tp.partition): f.result().offset for tp, f in futures.items()}
    except UnavailableError as error:
        if error.name != NO_LEADER:
            raise
        # librdkafka has this error both for a topic that does not exist and where it got no answer.
        for topic in sorted({topic for topic, _ in specs}):
            known = partitions_of(admin, topic, timeout_s)
            missing = [n for name, n in specs if name == topic and n not in known]
            if missing:
                detail = f"{topic} has no partition {missing[0]}"
                raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail) from error
        raise


def check_errors(partitions: Iterable[Any]) -> None:
    """Raises the first error of an answer that has one per partition."""
    for partition in partitions:
        if partition.error is not None:
            raise error_of(partition.error)

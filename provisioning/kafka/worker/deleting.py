"""Deletes the oldest records of partitions, or only plans that."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from provisioning.kafka.errors import RefusedError, UnknownPartitionError
from provisioning.kafka.shapes import LowWatermark
from provisioning.kafka.worker.clients import KafkaClients
from provisioning.kafka.worker.errors import kafka_errors
from provisioning.kafka.worker.offsets import earliest_offsets, end_offsets, partitions_of

TIMEOUT_S = 10.0


def delete_records(
    access: KafkaClients,
    topic: str,
    before: Mapping[int, int],
    *,
    validate_only: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> list[LowWatermark]:
    """Deletes the records before an offset (`before`, by partition; −1 is the partition's end).

    With `validate_only` it only returns what would be deleted. Raises `UnknownPartitionError`,
    `RefusedError` for an offset beyond the end, and `UnavailableError`.
    """
    with access.admin() as admin:
        known = partitions_of(admin, topic, timeout_s)
        missing = sorted(set(before) - set(known))
        if missing:
            detail = f"{topic} has no partition {missing[0]}"
            raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
        places = [(topic, number) for number in before]
        first = earliest_offsets(admin, places, timeout_s)
        if validate_only:
            after = _planned_starts(before, end_offsets(admin, places, timeout_s), topic)
        else:
            after = _delete_before(admin, topic, before, timeout_s)
        return [
            LowWatermark(
                partition=number,
                low_watermark=max(low, first[topic, number]),
                deleted_offsets=max(low - first[topic, number], 0),
            )
            for number, low in sorted(after.items())
        ]


def _planned_starts(
    before: Mapping[int, int], ends: Mapping[tuple[str, int], int], topic: str
) -> dict[int, int]:
    """The offset at which each partition would begin."""
    planned = {}
    for number, offset in before.items():
        end = ends[topic, number]
        if offset > end:
            detail = f"{topic} partition {number} ends at {end}, before {offset}"
            raise RefusedError("OFFSET_OUT_OF_RANGE", detail)
        planned[number] = end if offset < 0 else offset
    return planned


def _delete_before(
    admin: AdminClient, topic: str, before: Mapping[int, int], timeout_s: float
) -> dict[int, int]:
    """Deletes the records. Returns the offset at which each partition begins now."""
    ends = [
        TopicPartition(topic, number, OFFSET_END if offset < 0 else offset)
        for number, offset in sorted(before.items())
    ]
    with kafka_errors():
        futures = admin.delete_records(ends, request_timeout=timeout_s)
        return {place.partition: done.result().low_watermark for place, done in futures.items()}

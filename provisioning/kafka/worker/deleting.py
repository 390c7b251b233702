"""Deleting the oldest records of partitions, and what that would take."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from provisioning.kafka.errors import RefusedError, UnknownPartitionError
from provisioning.kafka.shapes import LowWatermark
from provisioning.kafka.worker.clients import Access
from provisioning.kafka.worker.errors import kafka_errors
from provisioning.kafka.worker.offsets import earliest_offsets, end_offsets, partitions_of

TIMEOUT_S = 10.0


def delete_records(
    access: Access,
    topic: str,
    before: Mapping[int, int],
    *,
    validate_only: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> list[LowWatermark]:
    """Deletes what lies before an offset of each partition; −1 is its end.

    With `validate_only` it tells what would go. Raises `UnknownPartitionError`, `RefusedError` (an
    offset beyond the end), `UnavailableError`.
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
            after = _planned(before, end_offsets(admin, places, timeout_s), topic)
        else:
            after = _deleted(admin, topic, before, timeout_s)
        return [
            LowWatermark(
                partition=number,
                low_watermark=max(low, first[topic, number]),
                deleted_offsets=max(low - first[topic, number], 0),
            )
            for number, low in sorted(after.items())
        ]


def _planned(
    before: Mapping[int, int], ends: Mapping[tuple[str, int], int], topic: str
) -> dict[int, int]:
    """Where each partition would begin."""
    planned = {}
    for number, offset in before.items():
        end = ends[topic, number]
        if offset > end:
            detail = f"{topic} partition {number} ends at {end}, before {offset}"
            raise RefusedError("OFFSET_OUT_OF_RANGE", detail)
        planned[number] = end if offset < 0 else offset
    return planned


def _deleted(
    admin: AdminClient, topic: str, before: Mapping[int, int], timeout_s: float
) -> dict[int, int]:
    """Deletes; where each partition begins now."""
    wanted = [
        TopicPartition(topic, number, OFFSET_END if offset < 0 else offset)
        for number, offset in sorted(before.items())
    ]
    with kafka_errors():
        asked = admin.delete_records(wanted, request_timeout=timeout_s)
        return {place.partition: done.result().low_watermark for place, done in asked.items()}

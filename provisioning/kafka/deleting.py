"""Deleting the oldest records of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from confluent_kafka import OFFSET_END, TopicPartition

from provisioning.kafka.clients import Access
from provisioning.kafka.errors import UnknownPartitionError, kafka_errors
from provisioning.kafka.offsets import partitions_of

TIMEOUT_S = 10.0


class LowWatermark(TypedDict):
    """Where a partition begins now."""

    partition: int
    low_watermark: int


def delete_records(
    access: Access, topic: str, before: Mapping[int, int], *, timeout_s: float = TIMEOUT_S
) -> list[LowWatermark]:
    """Deletes what lies before an offset of each partition; −1 is its end.

    Raises `UnknownPartitionError`, `RefusedError` (an offset beyond the end), `UnavailableError`.
    """
    with access.admin() as admin:
        known = partitions_of(admin, topic, timeout_s)
        missing = sorted(set(before) - set(known))
        if missing:
            detail = f"{topic} has no partition {missing[0]}"
            raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
        wanted = [
            TopicPartition(topic, number, OFFSET_END if offset < 0 else offset)
            for number, offset in sorted(before.items())
        ]
        with kafka_errors():
            asked = admin.delete_records(wanted, request_timeout=timeout_s)
            return [
                LowWatermark(partition=place.partition, low_watermark=future.result().low_watermark)
                for place, future in sorted(asked.items(), key=lambda each: each[0].partition)
            ]

"""Deletes the oldest records of partitions, or only plans that."""

from __future__ import annotations

from collections.abc import Mapping

from provisioning.kafka.access import Access
from provisioning.kafka.errors import RefusedError
from provisioning.kafka.offsets import (
    check_partitions,
    earliest_offsets,
    end_offsets,
    partitions_of,
)
from provisioning.kafka.shapes import LowWatermark

TIMEOUT_S = 10.0


def delete_records(
    access: Access,
    topic: str,
    before: Mapping[int, int],
    *,
    validate_only: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> list[LowWatermark]:
    """Deletes the records before an offset (`before`, by partition; −1 is the partition's end).

    With `validate_only` it only returns what would be deleted. Raises `UnknownPartitionError`, and
    `RefusedError` for an offset beyond the end.
    """
    places = [(topic, number) for number in before]
    with access.client() as client:
        check_partitions(topic, before, partitions_of(client, topic, timeout_s))
        first = earliest_offsets(client, places, timeout_s)
        if validate_only:
            after = _planned_starts(before, end_offsets(client, places, timeout_s), topic)
        else:
            places_before = {(topic, number): offset for number, offset in before.items()}
            after = client.delete_records(places_before, timeout_s)
    return [
        LowWatermark(
            partition=number,
            low_watermark=max(low, first[topic, number]),
            deleted_offsets=max(low - first[topic, number], 0),
        )
        for (_, number), low in sorted(after.items())
    ]


def _planned_starts(
    before: Mapping[int, int], ends: Mapping[tuple[str, int], int], topic: str
) -> dict[tuple[str, int], int]:
    """The offset at which each partition would begin."""
    planned = {}
    for number, offset in before.items():
        end = ends[topic, number]
        if offset > end:
            detail = f"{topic} partition {number} ends at {end}, before {offset}"
            raise RefusedError("OFFSET_OUT_OF_RANGE", detail)
        planned[topic, number] = end if offset < 0 else offset
    return planned

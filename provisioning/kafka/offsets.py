"""Looks up partitions, and their offsets: the first one, the next one, and that of a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.errors import UnknownPartitionError
from provisioning.kafka.shapes import TIMEOUT_S, Partition

# What the client understands in place of a moment.
END, BEGINNING = -1, -2


def end_offset(access: Access, topic: str, partition: int) -> int:
    """The offset of the next record of a partition. Raises `UnknownPartitionError`."""
    with access.client() as client:
        return end_offsets(client, [(topic, partition)], TIMEOUT_S)[topic, partition]


def earliest_offsets(
    client: _core.KafkaClient, partitions: Iterable[Partition], timeout_s: float
) -> dict[Partition, int]:
    """The first offset of each partition that retention has kept."""
    return _known_offsets(client, dict.fromkeys(partitions, BEGINNING), timeout_s)


def end_offsets(
    client: _core.KafkaClient, partitions: Iterable[Partition], timeout_s: float
) -> dict[Partition, int]:
    """The offset of the next record of each partition (its high watermark)."""
    return _known_offsets(client, dict.fromkeys(partitions, END), timeout_s)


def offsets_at(
    client: _core.KafkaClient, partitions: Iterable[Partition], timestamp_ms: int, timeout_s: float
) -> dict[Partition, int | None]:
    """The offset of the first record at or after a moment, by partition; None where none is."""
    return client.list_offsets(dict.fromkeys(partitions, max(timestamp_ms, 0)), timeout_s)


def partitions_of(client: _core.KafkaClient, topic: str, timeout_s: float) -> list[int]:
    """The numbers of a topic's partitions. Raises `UnknownPartitionError`."""
    numbers = client.partitions([topic], timeout_s).get(topic)
    if not numbers:
        detail = f"This server does not host this topic: {topic}"
        raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
    return numbers


def check_partitions(topic: str, numbers: Iterable[int], known: Iterable[int]) -> None:
    """Raises `UnknownPartitionError` where a number is not among those that are known."""
    missing = sorted(set(numbers) - set(known))
    if missing:
        detail = f"{topic} has no partition {missing[0]}"
        raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)


def _known_offsets(
    client: _core.KafkaClient, specs: Mapping[Partition, int], timeout_s: float
) -> dict[Partition, int]:
    offsets = client.list_offsets(dict(specs), timeout_s)
    return {place: offset for place, offset in offsets.items() if offset is not None}

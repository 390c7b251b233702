"""How far a consumer group is behind, in records and in seconds.

Seconds are the age of the first record that the group has not committed: now minus that record's
timestamp, read from the record itself. No interpolation between samples, so it is right for the
first look at a group, for a producer that stopped, and for a topic with gaps. What could not be
read in time is unknown (None), never zero.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from provisioning.kafka.clients import Access, assign, take
from provisioning.kafka.errors import UnknownPartitionError, error_of
from provisioning.kafka.offsets import Partition

POLL_S = 0.1
# Of all partitions of a look at lag, so many are read at a time: each costs a fetch of a batch.
PARTITIONS_AT_A_TIME = 200


def record_lag(committed: int | None, end: int | None) -> int | None:
    """Records between what is committed and the end. None where either is unknown."""
    if committed is None or end is None:
        return None
    # The end may have been read before a commit that came between.
    return max(end - committed, 0)


def first_timestamps(
    access: Access, positions: Mapping[Partition, int], timeout_s: float
) -> dict[Partition, int | None]:
    """Reads the first record at or after each position.

    Gives its timestamp in ms; None where no record is left there (the rest are control records of
    transactions). A partition that gave nothing within `timeout_s` seconds is left out.
    """
    deadline = time.monotonic() + timeout_s
    found: dict[Partition, int | None] = {}
    wanted = sorted(positions.items())
    # Uncommitted records count: the end that lag is measured against is the high watermark.
    with access.consumer("read_uncommitted") as consumer:
        for at in range(0, len(wanted), PARTITIONS_AT_A_TIME):
            part = dict(wanted[at : at + PARTITIONS_AT_A_TIME])
            found |= _read_first(consumer, part, deadline)
    return found


def _read_first(
    consumer: Consumer, positions: Mapping[Partition, int], deadline: float
) -> dict[Partition, int | None]:
    assign(consumer, [TopicPartition(t, n, offset) for (t, n), offset in positions.items()])
    found: dict[Partition, int | None] = {}
    while len(found) < len(positions) and time.monotonic() < deadline:
        for message in take(consumer, len(positions), POLL_S):
            partition = (message.topic(), message.partition())
            if message.error() is not None:
                _check(message.error())
            if partition not in found and partition in positions:
                found[partition] = _timestamp_ms(message)
                # So that a partition that was answered fetches no more.
                consumer.pause([TopicPartition(*partition)])
    return found


def _check(error: KafkaError) -> None:
    """An end of partition is an answer; a partition that went away is none, and no failure."""
    if error.code() == KafkaError._PARTITION_EOF:
        return
    failure = error_of(error)
    if not isinstance(failure, UnknownPartitionError):
        raise failure


def _timestamp_ms(message: Message) -> int | None:
    if message.error() is not None:
        return None
    kind, timestamp_ms = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else int(timestamp_ms)


def seconds_behind(timestamp_ms: int | None, now_ms: int) -> float:
    """Age of the first record that waits. None waits: 0. A clock ahead of ours makes no debt."""
    if timestamp_ms is None:
        return 0.0
    return max(now_ms - timestamp_ms, 0) / 1000

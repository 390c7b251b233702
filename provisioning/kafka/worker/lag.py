"""How far a consumer group is behind, in records and in seconds.

Seconds are the age of the first record that the group has not committed: now minus that record's
timestamp, read from the record itself. No interpolation between samples, so it is right for the
first look at a group, for a producer that stopped, and for a topic with gaps. What could not be
read in time is unknown (None), never zero.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from provisioning.kafka.errors import UnavailableError
from provisioning.kafka.shapes import Partition
from provisioning.kafka.worker.clients import Access, assign, take
from provisioning.kafka.worker.errors import error_of

POLL_S = 0.1
# Of all partitions of a look at lag, so many are read at a time: each costs a fetch of a batch.
PARTITIONS_AT_A_TIME = 200
MESSAGES_AT_A_TIME = 500
# Reading over so many records costs less than another fetch.
NEAR = 50

Position = tuple[Partition, int]


def record_lag(committed: int | None, end: int | None) -> int | None:
    """Records between what is committed and the end. None where either is unknown."""
    if committed is None or end is None:
        return None
    # The end may have been read before a commit that came between.
    return max(end - committed, 0)


def first_timestamps(
    access: Access, positions: Collection[Position], timeout_s: float
) -> dict[Position, int | None]:
    """Reads the first record at or after each position.

    Gives its timestamp in ms; None where no record is left there (the rest are control records of
    transactions). A position that gave nothing within `timeout_s` seconds is left out, and so is
    one whose record has no timestamp, or whose partition went away.
    """
    deadline = time.monotonic() + timeout_s
    waiting: dict[Partition, list[int]] = {}
    for partition, offset in sorted(set(positions), reverse=True):
        waiting.setdefault(partition, []).append(offset)
    found: dict[Position, int | None] = {}
    partitions = sorted(waiting)
    # Uncommitted records count: the end that lag is measured against is the high watermark.
    with access.consumer("read_uncommitted") as consumer:
        for at in range(0, len(partitions), PARTITIONS_AT_A_TIME):
            part = {each: waiting[each] for each in partitions[at : at + PARTITIONS_AT_A_TIME]}
            _read_first(consumer, part, found, deadline)
    return found


def _read_first(
    consumer: Consumer,
    waiting: dict[Partition, list[int]],
    found: dict[Position, int | None],
    deadline: float,
) -> None:
    """`waiting` holds offsets by partition, the lowest last; what is answered is taken out."""
    assign(consumer, [TopicPartition(t, n, offsets[-1]) for (t, n), offsets in waiting.items()])
    while waiting and time.monotonic() < deadline:
        for message in take(consumer, MESSAGES_AT_A_TIME, POLL_S):
            partition = (message.topic(), message.partition())
            if partition in waiting:
                _answer(message, partition, waiting, found)
                _go_on(consumer, message, partition, waiting)


def _answer(
    message: Message,
    partition: Partition,
    waiting: dict[Partition, list[int]],
    found: dict[Position, int | None],
) -> None:
    """One record is the first one of every position up to it that waits."""
    offsets = waiting[partition]
    if message.error() is not None:
        if _is_end(message.error()):
            found.update({(partition, offset): None for offset in offsets})
        offsets.clear()
        return
    kind, timestamp_ms = message.timestamp()
    while offsets and offsets[-1] <= message.offset():
        offset = offsets.pop()
        if kind != TIMESTAMP_NOT_AVAILABLE:
            found[partition, offset] = timestamp_ms


def _go_on(
    consumer: Consumer,
    message: Message,
    partition: Partition,
    waiting: dict[Partition, list[int]],
) -> None:
    """Leaves a partition without questions; goes to the next one that is far off."""
    topic, number = partition
    if not waiting[partition]:
        del waiting[partition]
        # So that it fetches no more.
        consumer.pause([TopicPartition(topic, number)])
    elif waiting[partition][-1] - message.offset() > NEAR:
        consumer.seek(TopicPartition(topic, number, waiting[partition][-1]))


def _is_end(error: KafkaError) -> bool:
    """An end of partition is an answer. Of a partition that went away, that brokers refuse to be
    read (an internal one) or that cannot be decoded, no age is known; others still have theirs.
    """
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    failure = error_of(error)
    if isinstance(failure, UnavailableError):
        raise failure
    return False


def seconds_behind(timestamp_ms: int | None, now_ms: int) -> float:
    """Age of the first record that waits. None waits: 0. A clock ahead of ours makes no debt."""
    if timestamp_ms is None:
        return 0.0
    return max(now_ms - timestamp_ms, 0) / 1000

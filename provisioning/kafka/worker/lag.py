"""How far a consumer group is behind, in records and in seconds.

The lag in seconds is the age of the first record that the group has not committed: now minus that
record's timestamp, which is read from the record itself. It is not interpolated between samples, so
it is right at the first look at a group, for a producer that stopped, and for a topic with gaps.
Where the record could not be read in time, the lag is unknown (None), never zero.

A record in a batch that cannot be decoded hides no other one: the moments of what is left then come
from the headers of batches, which have that of their first record.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from provisioning.kafka.errors import KafkaCallError, UnavailableError
from provisioning.kafka.shapes import Partition
from provisioning.kafka.worker.clients import KafkaClients, assign_partitions, take_messages
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.heads import heads_from
from provisioning.kafka.worker.ranges import QUIET_S

POLL_S = 0.1
# How many partitions are read at a time, each of which costs a fetch of a batch.
PARTITIONS_AT_A_TIME = 200
MESSAGES_AT_A_TIME = 500
# To skip up to this many records costs less than another fetch.
NEAR = 50

Position = tuple[Partition, int]


def record_lag(committed: int | None, end: int | None) -> int | None:
    """The records between a committed offset and the end; None where either is unknown."""
    if committed is None or end is None:
        return None
    # It is not negative, also where the group committed after the end was read.
    return max(end - committed, 0)


def first_timestamps(
    access: KafkaClients,
    positions: Collection[Position],
    timeout_s: float,
    careful: bool = False,
) -> dict[Position, int | None]:
    """The timestamp (Unix ms) of the first record at or after each position.

    It is None where no record is left there, but only control records of transactions. A position
    is left out where nothing was read within `timeout_s` seconds, its record has no timestamp, or
    its partition is gone. With `careful` no record is decoded.
    """
    deadline = time.monotonic() + timeout_s
    waiting: dict[Partition, list[int]] = {}
    for partition, offset in sorted(set(positions), reverse=True):
        waiting.setdefault(partition, []).append(offset)
    timestamps: dict[Position, int | None] = {}
    partitions = sorted(waiting)
    if careful:
        _read_heads(access, waiting, timestamps, deadline)
        return timestamps
    # Records of open transactions count too, because lag is measured against the high watermark.
    with access.consumer("read_uncommitted") as consumer:
        for at in range(0, len(partitions), PARTITIONS_AT_A_TIME):
            part = {pair: waiting[pair] for pair in partitions[at : at + PARTITIONS_AT_A_TIME]}
            _read_first(consumer, part, timestamps, deadline)
            if part:
                # It may hang, so the other partitions are read without it.
                access.taint(consumer)
                left = {pair: waiting[pair] for pair in partitions[at:] if waiting[pair]}
                _read_heads(access, left, timestamps, deadline)
                break
    return timestamps


def _read_heads(
    access: KafkaClients,
    waiting: Mapping[Partition, list[int]],
    timestamps: dict[Position, int | None],
    deadline: float,
) -> None:
    """Enters the moments in the headers of the batches where the waiting offsets lie."""
    for (topic, number), offsets in waiting.items():
        for offset in offsets:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return
            heads = heads_from(access, topic, number, offset, left_s)
            with suppress(KafkaCallError):
                head = next(heads, None)
                timestamps[(topic, number), offset] = head and head["timestamp_ms"]


def _read_first(
    consumer: Consumer,
    waiting: dict[Partition, list[int]],
    timestamps: dict[Position, int | None],
    deadline: float,
) -> None:
    """Reads the timestamps of `waiting`, offsets by partition with the lowest last.

    Offsets with an answer are removed from it, and entered in `timestamps`. What is left gave
    nothing in time, or for a while.
    """
    assign_partitions(
        consumer, [TopicPartition(t, n, offsets[-1]) for (t, n), offsets in waiting.items()]
    )
    last_s = time.monotonic()
    while waiting and time.monotonic() < min(deadline, last_s + QUIET_S):
        for message in take_messages(consumer, MESSAGES_AT_A_TIME, POLL_S):
            last_s = time.monotonic()
            partition = (message.topic(), message.partition())
            if partition in waiting:
                _note_timestamp(message, partition, waiting, timestamps)
                _seek_next(consumer, message, partition, waiting)


def _note_timestamp(
    message: Message,
    partition: Partition,
    waiting: dict[Partition, list[int]],
    timestamps: dict[Position, int | None],
) -> None:
    """Enters a record's timestamp for all waiting offsets of its partition up to its own."""
    offsets = waiting[partition]
    if message.error() is not None:
        if _is_end(message.error()):
            timestamps.update({(partition, offset): None for offset in offsets})
        offsets.clear()
        return
    kind, timestamp_ms = message.timestamp()
    while offsets and offsets[-1] <= message.offset():
        offset = offsets.pop()
        if kind != TIMESTAMP_NOT_AVAILABLE:
            timestamps[partition, offset] = timestamp_ms


def _seek_next(
    consumer: Consumer,
    message: Message,
    partition: Partition,
    waiting: dict[Partition, list[int]],
) -> None:
    """Pauses a partition without waiting offsets; seeks to the next offset where it is far."""
    topic, number = partition
    if not waiting[partition]:
        del waiting[partition]
        # Paused, so that it fetches no more.
        consumer.pause([TopicPartition(topic, number)])
    elif waiting[partition][-1] - message.offset() > NEAR:
        consumer.seek(TopicPartition(topic, number, waiting[partition][-1]))


def _is_end(error: KafkaError) -> bool:
    """Whether an error means the end of the partition, which is an answer.

    Other errors return False: the partition is gone, brokers refuse reading it (an internal one),
    or its records cannot be decoded. Then its age is unknown, and other partitions are still read.
    Raises `UnavailableError`.
    """
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    failure = error_of(error)
    if isinstance(failure, UnavailableError):
        raise failure
    return False


def seconds_behind(timestamp_ms: int | None, now_ms: int) -> float:
    """The age of the first waiting record; 0 where none waits or its timestamp is in the future."""
    if timestamp_ms is None:
        return 0.0
    return max(now_ms - timestamp_ms, 0) / 1000

"""Reads ranges of offsets of several partitions, within limits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from provisioning.kafka.filters import Filter
from provisioning.kafka.worker.clients import assign_partitions, take_messages
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.records import Readable, size_of

POLL_S = 0.1
MESSAGES_AT_A_TIME = 500


@dataclass
class Budget:
    """The bytes that a read may still take, and its end (of `time.monotonic`)."""

    bytes_left: int
    deadline: float
    # What was read so far, records that a filter left out included.
    records_read: int = 0
    bytes_read: int = 0

    def pay_for(self, message: Message) -> None:
        """Takes a record's bytes from the budget."""
        size = size_of(message)
        self.bytes_left -= size
        self.bytes_read += size
        self.records_read += 1

    def spent(self) -> str | None:
        """The limit that was reached, `bytes` or `time`; None where none was."""
        if self.bytes_left <= 0:
            return "bytes"
        return "time" if time.monotonic() >= self.deadline else None


@dataclass
class Read:
    """The result of a read: messages by partition, in the order of offsets.

    `done` holds the partitions whose range was read to its end, `at` the next offset of the others.
    """

    messages: dict[int, list[Message]] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    at: dict[int, int] = field(default_factory=dict)


def read_ranges(
    consumer: Consumer,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    budget: Budget,
    *,
    each_max: int | None = None,
    keep: Filter | None = None,
) -> Read:
    """Reads the offsets of each range from its first up to, without, its second.

    Every record counts against the budget, and reading ends where it is spent. With `each_max` a
    partition is left once it gave so many messages. Records for which `keep` returns False are read
    and left out.
    """
    read = Read({number: [] for number in ranges}, at={n: low for n, (low, _) in ranges.items()})
    read.done = {number for number, (low, high) in ranges.items() if low >= high}
    full: set[int] = set()
    todo = [n for n in sorted(ranges) if n not in read.done]
    assign_partitions(consumer, [TopicPartition(topic, n, ranges[n][0]) for n in todo])
    while len(read.done | full) < len(ranges) and budget.spent() is None:
        for message in take_messages(consumer, MESSAGES_AT_A_TIME, POLL_S):
            number = message.partition()
            if number in read.done or number in full:
                continue
            if budget.spent() is not None and message.error() is None:
                break
            _take_message(read, message, ranges[number][1], budget, keep)
            if each_max is not None and len(read.messages[number]) >= each_max:
                full.add(number)
            if number in read.done or number in full:
                consumer.pause([TopicPartition(topic, number)])
    return read


def _take_message(
    read: Read, message: Message, high: int, budget: Budget, keep: Filter | None
) -> None:
    number = message.partition()
    error = message.error()
    if error is not None:
        if error.code() != KafkaError._PARTITION_EOF:
            raise error_of(error)
        read.done.add(number)
        return
    if message.offset() < high:
        if keep is None or keep(Readable(message)):
            read.messages[number].append(message)
        budget.pay_for(message)
        read.at[number] = message.offset() + 1
    if message.offset() >= high - 1:
        read.done.add(number)

"""Reading ranges of offsets of several partitions, within limits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from provisioning.kafka.filters import Filter
from provisioning.kafka.worker.clients import assign, take
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.records import Readable, size_of

POLL_S = 0.1
MESSAGES_AT_A_TIME = 500


@dataclass
class Budget:
    """What a read may still cost: bytes of records, and a moment to end (of `time.monotonic`)."""

    bytes_left: int
    deadline: float
    # What was read already, records that a filter leaves out included.
    records_read: int = 0
    bytes_read: int = 0

    def take(self, message: Message) -> None:
        """Pays for a record."""
        size = size_of(message)
        self.bytes_left -= size
        self.bytes_read += size
        self.records_read += 1

    def spent(self) -> str | None:
        """Which limit was reached, `bytes` or `time`; None where none was."""
        if self.bytes_left <= 0:
            return "bytes"
        return "time" if time.monotonic() >= self.deadline else None


@dataclass
class Read:
    """What was read, by partition, in order of offsets.

    `done` holds whose range is at its end; `at` how far the others were read (the next offset).
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
    """Reads from each range's first offset to before its second, and takes it from the budget.

    With `each_max` a partition that gave so many is left there; what `keep` is false for is read
    and left out. Ends early where the budget does.
    """
    read = Read({number: [] for number in ranges}, at={n: low for n, (low, _) in ranges.items()})
    read.done = {number for number, (low, high) in ranges.items() if low >= high}
    full: set[int] = set()
    todo = [n for n in sorted(ranges) if n not in read.done]
    assign(consumer, [TopicPartition(topic, n, ranges[n][0]) for n in todo])
    while len(read.done | full) < len(ranges) and budget.spent() is None:
        for message in take(consumer, MESSAGES_AT_A_TIME, POLL_S):
            number = message.partition()
            if number in read.done or number in full:
                continue
            if budget.spent() is not None and message.error() is None:
                break
            _take(read, message, ranges[number][1], budget, keep)
            if each_max is not None and len(read.messages[number]) >= each_max:
                full.add(number)
            if number in read.done or number in full:
                consumer.pause([TopicPartition(topic, number)])
    return read


def _take(read: Read, message: Message, high: int, budget: Budget, keep: Filter | None) -> None:
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
        budget.take(message)
        read.at[number] = message.offset() + 1
    if message.offset() >= high - 1:
        read.done.add(number)

"""Reads ranges of offsets of several partitions, within limits.

A batch that cannot be decoded ends the range of its partition, which is then `stuck`. librdkafka
reports some of such batches as errors; of others it says nothing and fetches them again and again,
and on a few its thread never returns.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from provisioning.kafka.errors import UndecodableError
from provisioning.kafka.filters import Filter
from provisioning.kafka.shapes import TIMEOUT_S, BatchHead
from provisioning.kafka.worker.batches import BatchConsumer
from provisioning.kafka.worker.clients import KafkaClients, assign_partitions, take_messages
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.heads import heads_from
from provisioning.kafka.worker.records import Readable, size_of

POLL_S = 0.1
MESSAGES_AT_A_TIME = 500
# Where no partition gives anything for so long, those before the end of their ranges may be stuck.
QUIET_S = 1.0


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
    `stuck` holds those of them that gave an error of decoding, or nothing for `QUIET_S`, at `at`.
    """

    messages: dict[int, list[Message]] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    at: dict[int, int] = field(default_factory=dict)
    stuck: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Reader:
    """Reads a topic's ranges with the clients of a worker.

    Every record counts against the budget, and reading ends where it is spent. Records for which
    `keep` returns False are read and left out. A `careful` reader reads batch by batch and
    announces each of them, so that whoever asked knows which batch ended this process.
    """

    access: KafkaClients
    topic: str
    budget: Budget
    keep: Filter | None = None
    careful: bool = False

    def read(self, ranges: Mapping[int, tuple[int, int]], *, each_max: int | None = None) -> Read:
        """Reads the offsets of each range from its first up to, without, its second.

        With `each_max` a partition is left once it gave so many messages.
        """
        read = Read({n: [] for n in ranges}, at={n: low for n, (low, _) in ranges.items()})
        read.done = {number for number, (low, high) in ranges.items() if low >= high}
        if self.careful:
            with self.access.batch_consumer() as batches:
                self._read_batches(batches, read, ranges, each_max)
                self._taint_if_stuck(read, batches)
        else:
            with self.access.consumer() as consumer:
                self._read_together(consumer, read, ranges, each_max)
                self._taint_if_stuck(read, consumer)
        return read

    def _taint_if_stuck(self, read: Read, client: Consumer | BatchConsumer) -> None:
        if read.stuck:
            # It may have asked for ever larger answers, or hang.
            self.access.taint(client)

    def _read_together(
        self,
        consumer: Consumer,
        read: Read,
        ranges: Mapping[int, tuple[int, int]],
        each_max: int | None,
    ) -> None:
        over = set(read.done)
        todo = [n for n in sorted(ranges) if n not in read.done]
        assign_partitions(consumer, [TopicPartition(self.topic, n, ranges[n][0]) for n in todo])
        last_s = time.monotonic()
        while len(over) < len(ranges) and self.budget.spent() is None:
            for message in take_messages(consumer, MESSAGES_AT_A_TIME, POLL_S):
                number = message.partition()
                if number in over:
                    continue
                if self.budget.spent() is not None and message.error() is None:
                    break
                last_s = time.monotonic()
                if self._take_message(read, message, ranges[number][1], each_max):
                    over.add(number)
                    consumer.pause([TopicPartition(self.topic, number)])
            if time.monotonic() - last_s > QUIET_S:
                read.stuck |= set(todo) - over
                return

    def _read_batches(
        self,
        batches: BatchConsumer,
        read: Read,
        ranges: Mapping[int, tuple[int, int]],
        each_max: int | None,
    ) -> None:
        for number in sorted(set(ranges) - read.done):
            low, high = ranges[number]
            heads = heads_from(self.access, self.topic, number, low, TIMEOUT_S)
            while self.budget.spent() is None:
                head = next(heads, None)
                if head is None or head["first_offset"] >= high:
                    read.done.add(number)
                    break
                self.access.announce([number, max(low, head["first_offset"])])
                if not self._read_batch(batches, read, head, ranges[number]):
                    read.stuck.add(number)
                    break
                read.at[number] = head["next_offset"]
                if head["next_offset"] >= high:
                    read.done.add(number)
                    break
                if each_max is not None and len(read.messages[number]) >= each_max:
                    break

    def _read_batch(
        self, batches: BatchConsumer, read: Read, head: BatchHead, range_: tuple[int, int]
    ) -> bool:
        """Reads a batch's records in a range. Returns whether all of them could be decoded."""
        low, high = range_
        at = max(low, head["first_offset"])
        messages = batches.take(TopicPartition(self.topic, head["partition"], at))
        count = 0
        for message in messages:
            error = message.error()
            if error is not None:
                self._is_end(error)
                break
            # A damaged batch may give more records than it has offsets.
            if message.offset() >= head["next_offset"]:
                break
            count += 1
            if message.offset() < high:
                self._keep_message(read, message)
        return count > 0 if at > head["first_offset"] else count >= head["records"]

    def _take_message(self, read: Read, message: Message, high: int, each_max: int | None) -> bool:
        """Takes a message into `read`. Returns whether its partition is read far enough."""
        number = message.partition()
        error = message.error()
        if error is not None:
            (read.done if self._is_end(error) else read.stuck).add(number)
            return True
        if message.offset() < high:
            if message.offset() < read.at[number]:
                # The batch before held more records than it has offsets: they are of no offset.
                read.messages[number] = [
                    taken for taken in read.messages[number] if taken.offset() < message.offset()
                ]
            self._keep_message(read, message)
        if message.offset() >= high - 1:
            read.done.add(number)
            return True
        return each_max is not None and len(read.messages[number]) >= each_max

    def _keep_message(self, read: Read, message: Message) -> None:
        """Takes a message, unless it is to be left out, and counts it."""
        number = message.partition()
        if self.keep is None or self.keep(Readable(message)):
            read.messages[number].append(message)
        self.budget.pay_for(message)
        read.at[number] = message.offset() + 1

    @staticmethod
    def _is_end(error: KafkaError) -> bool:
        """Whether an error means the end of a partition; False: a batch cannot be decoded.

        Raises every other error.
        """
        if error.code() == KafkaError._PARTITION_EOF:
            return True
        failure = error_of(error)
        if not isinstance(failure, UndecodableError):
            raise failure
        return False


def read_around(
    reader: Reader,
    ranges: Mapping[int, tuple[int, int]],
    skip: Sequence[tuple[int, int, int]],
    *,
    each_max: int | None = None,
) -> Read:
    """Reads ranges as a reader does, but for the offsets to skip: see `Browse.skip`."""
    legs = {n: legs_of(low, high, skip, n) for n, (low, high) in ranges.items()}
    whole = Read({n: [] for n in ranges}, at={n: low for n, (low, _) in ranges.items()})
    whole.done = {number for number, left in legs.items() if not left}
    turn = 0
    while reader.budget.spent() is None:
        now = {
            number: left[turn]
            for number, left in legs.items()
            if turn < len(left)
            and number not in whole.stuck
            and (turn == 0 or whole.at[number] >= left[turn - 1][1])
            and (each_max is None or len(whole.messages[number]) < each_max)
        }
        if not now:
            break
        read = reader.read(now, each_max=each_max)
        for number, (_, high) in now.items():
            whole.messages[number] += read.messages[number]
            whole.at[number] = high if number in read.done else read.at[number]
            if number in read.done and turn == len(legs[number]) - 1:
                whole.done.add(number)
        whole.stuck |= read.stuck
        turn += 1
    return whole


def legs_of(
    low: int, high: int, skip: Sequence[tuple[int, int, int]], partition: int
) -> list[tuple[int, int]]:
    """The parts of the range from `low` to before `high` that are not skipped. Pure."""
    legs = []
    for number, first, after in sorted(skip):
        if number == partition and first < high and after > low:
            if low < first:
                legs.append((low, first))
            low = max(low, after)
    if low < high:
        legs.append((low, high))
    return legs

"""Reads ranges of offsets of several partitions, within limits.

A batch that cannot be decoded is passed over and named: its offsets are known from its header.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.filters import Filter
from provisioning.kafka.offsets import earliest_offsets
from provisioning.kafka.records import FILTERED_BYTES_MAX, Readable, record_of
from provisioning.kafka.shapes import BYTES_MAX, SHOWN_BYTES_MAX, Damaged, Record

# What one fetch brings at most, in bytes of batches: in all, and of one partition. The first batch
# may be larger by itself.
FETCH_BYTES_MAX = 4 * 1024 * 1024
PARTITION_BYTES_MAX = 512 * 1024
# The first fetch of a read asks for so little of a partition, and each further one for twice as
# much: what brokers send is paid for, and most pages show a few records.
FIRST_BYTES = 64 * 1024
FETCH_WAIT_S = 0.1
# What is taken of a batch at a time, between two looks at the limits.
RECORDS_AT_A_TIME = 500
BYTES_AT_A_TIME = 1024 * 1024
# How long one batch may take to be decoded.
DECODE_S = 3.0
# What a record, and each of its headers, costs of a budget besides its bytes: as objects they take
# memory however small they are.
OVERHEAD_BYTES = 64


@dataclass
class Budget:
    """The bytes that a read may still take, and its end (of `time.monotonic`)."""

    bytes_left: int
    deadline: float
    # Bytes of records that may still be kept to be shown, which take several times their size.
    shown_left: int = BYTES_MAX
    # What was read so far, records that a filter left out included.
    records_read: int = 0
    bytes_read: int = 0

    def pay_for(self, fields: _core._Record) -> None:
        """Takes a record's bytes from the budget."""
        size = fields[7]
        self.bytes_left -= size + _overhead_of(fields)
        self.bytes_read += size
        self.records_read += 1

    def spent(self) -> str | None:
        """The limit that was reached, `bytes` or `time`; None where none was."""
        if self.bytes_left <= 0 or self.shown_left <= 0:
            return "bytes"
        return "time" if time.monotonic() >= self.deadline else None

    def left_s(self) -> float:
        """Seconds until the end."""
        return max(self.deadline - time.monotonic(), 0.0)


@dataclass
class Read:
    """The result of a read: records by partition, in the order of offsets.

    `done` holds the partitions whose range was read to its end, `at` the next offset of all of
    them. `trimmed` holds those of which older records were dropped again, as more were read than
    are kept. `damaged` holds the batches that could not be decoded.
    """

    records: dict[int, deque[Record]]
    at: dict[int, int]
    done: set[int] = field(default_factory=set)
    trimmed: set[int] = field(default_factory=set)
    damaged: list[Damaged] = field(default_factory=list)
    # What each of the records costs of the bytes that may be shown.
    shown: dict[int, deque[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """Reads a topic's ranges.

    Every record counts against the budget, and reading ends where it is spent. Records for which
    `keep` returns False are read and left out.
    """

    access: Access
    client: _core.KafkaClient
    topic: str
    budget: Budget
    keep: Filter | None = None
    # How many bytes of a key, a value and a header a record keeps.
    shown_max: int = SHOWN_BYTES_MAX

    @property
    def read_max(self) -> int:
        """How many bytes of a key or a value are looked at."""
        return self.shown_max if self.keep is None else max(self.shown_max, FILTERED_BYTES_MAX)

    def read(self, ranges: Mapping[int, tuple[int, int]], *, first: int | None, kept: int) -> Read:
        """Reads the offsets of each range from its first up to, without, its second.

        With `first` a partition is left once it gave so many records. Of each at most the last
        `kept` are kept.
        """
        read = Read(
            records={n: deque(maxlen=kept) for n in ranges},
            at={n: low for n, (low, _) in ranges.items()},
            done={number for number, (low, high) in ranges.items() if low >= high},
        )
        full: set[int] = set()
        partition_bytes = FIRST_BYTES
        while self.budget.spent() is None:
            places = {
                (self.topic, n): read.at[n] for n in sorted(ranges) if n not in read.done | full
            }
            if not places:
                break
            fetched = self._fetch(places, partition_bytes)
            partition_bytes = min(2 * partition_bytes, PARTITION_BYTES_MAX)
            for part in fetched:
                number = part.partition
                if part.out_of_range:
                    self._go_to_start(read, number, ranges[number][1])
                elif self.read_fetched(read, part, ranges[number][1], first):
                    full.add(number)
                if self.budget.spent() is not None:
                    break
        return read

    def _fetch(
        self, places: dict[tuple[str, int], int], partition_bytes: int
    ) -> list[_core.KafkaPartition]:
        return self.client.fetch(
            places,
            bytes_max=FETCH_BYTES_MAX,
            partition_bytes_max=partition_bytes,
            wait_s=FETCH_WAIT_S,
            committed_only=False,
            timeout_s=self.budget.left_s(),
        )

    def _go_to_start(self, read: Read, number: int, high: int) -> None:
        """Goes on where the log begins now: retention or its owner deleted what was there."""
        starts = earliest_offsets(self.client, [(self.topic, number)], self.budget.left_s())
        start = starts[self.topic, number]
        if start <= read.at[number] or start >= high:
            # Nothing is left of the range, or the log ends before it.
            read.done.add(number)
        read.at[number] = max(start, read.at[number])

    def read_fetched(
        self, read: Read, part: _core.KafkaPartition, high: int, first: int | None
    ) -> bool:
        """Reads what was fetched of a partition. Returns whether it gave enough records."""
        number = part.partition
        if part.end <= read.at[number]:
            read.done.add(number)  # the log is shorter than it was
            return False
        with self.access.computing() as charge:
            return self._read_batches(read, part, high, first, charge)

    def _read_batches(
        self,
        read: Read,
        part: _core.KafkaPartition,
        high: int,
        first: int | None,
        charge: Callable[[float], None],
    ) -> bool:
        number = part.partition
        while self.budget.spent() is None and (batch := part.next_batch()) is not None:
            if batch.first_offset >= high:
                read.done.add(number)
                return False
            damage, opened_in_s = (None, 0.0) if batch.control else batch.open(DECODE_S)
            charge(opened_in_s)
            if damage is not None:
                read.damaged.append(
                    Damaged(
                        partition=number,
                        first_offset=batch.first_offset,
                        next_offset=batch.next_offset,
                        reason=damage,
                    )
                )
            elif not batch.control and not self._read_batch(
                read, number, batch, high, first, charge
            ):
                return self.budget.spent() is None
            read.at[number] = max(read.at[number], batch.next_offset)
            if batch.next_offset >= high:
                read.done.add(number)
                return False
        return False

    def _read_batch(
        self,
        read: Read,
        number: int,
        batch: _core.KafkaBatch,
        high: int,
        first: int | None,
        charge: Callable[[float], None],
    ) -> bool:
        """Reads an open batch's records below `high`. Returns False where limits end that first."""
        while taken := batch.take(
            read.at[number], RECORDS_AT_A_TIME, BYTES_AT_A_TIME, self.read_max
        ):
            for fields in taken:
                if fields[0] >= high:
                    return True
                if self.budget.spent() is not None:
                    return False
                self._take_record(read, number, fields, append_time=batch.append_time)
                # A filter may compute for long, and others want their turns.
                charge(0.0)
                if first is not None and len(read.records[number]) >= first:
                    if fields[0] >= high - 1:
                        read.done.add(number)
                    return False
        return True

    def _take_record(
        self, read: Read, number: int, fields: _core._Record, *, append_time: bool
    ) -> None:
        records = read.records[number]
        if self.keep is None or self.keep(Readable(number, fields)):
            shown = read.shown.setdefault(number, deque(maxlen=records.maxlen))
            if len(records) == records.maxlen:
                read.trimmed.add(number)
                self.budget.shown_left += shown[0]
            shown.append(_shown_size(fields, self.shown_max))
            self.budget.shown_left -= shown[-1]
            records.append(
                record_of(number, fields, append_time=append_time, shown_max=self.shown_max)
            )
        self.budget.pay_for(fields)
        read.at[number] = fields[0] + 1


def _overhead_of(fields: _core._Record) -> int:
    return OVERHEAD_BYTES * (1 + len(fields[6]))


def _shown_size(fields: _core._Record, shown_max: int) -> int:
    """What a record costs of which each part is shown up to so many bytes."""
    size = fields[7]
    if size > shown_max:
        parts = [fields[2], fields[4], *(value for _, value, _ in fields[6])]
        size = sum(len(name) for name, _, _ in fields[6])
        size += sum(min(len(part), shown_max) for part in parts if part is not None)
    return size + _overhead_of(fields)

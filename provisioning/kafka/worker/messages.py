"""Reads pages of a topic's records, and produces one record.

Reading changes nothing: it joins no group and commits no offset. Every read has limits of records,
bytes and time. Where one is reached, the page says which, and where the next page begins. A page
ends where a batch cannot be decoded, and says so: see `provisioning.kafka.reading`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaError, Message
from confluent_kafka.admin import AdminClient

from provisioning.kafka.errors import UnavailableError, UnknownPartitionError
from provisioning.kafka.filters import compile_filter
from provisioning.kafka.shapes import Browse, NewRecord, Page, Produced, Reached
from provisioning.kafka.worker.clients import PRODUCE_TIMEOUT_S, KafkaClients
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.offsets import (
    earliest_offsets,
    end_offsets,
    offsets_at,
    partitions_of,
)
from provisioning.kafka.worker.ranges import Budget, Read, Reader, read_around
from provisioning.kafka.worker.records import record_of, timestamp_of

# The most offsets of a partition in one window, when reading backwards.
WINDOW_MAX = 100_000


@dataclass(frozen=True)
class _Log:
    """A topic with its partitions' offsets, the request of a page, and the budget of reading it."""

    reader: Reader
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    request: Browse

    @property
    def budget(self) -> Budget:
        """The budget of reading it."""
        return self.reader.budget

    def page(
        self,
        taken: list[Message],
        positions: Mapping[int, int],
        *,
        complete: bool,
        stuck: Mapping[int, int],
    ) -> Page:
        """Makes the page of the messages `taken`. `complete`: nothing is left in this direction."""
        stopped = "limit" if len(taken) >= self.request.limit else self.budget.spent() or "limit"
        return Page(
            records=[record_of(message) for message in taken],
            positions=None if complete else dict(positions),
            stopped="end" if complete else stopped,
            reached=[
                Reached(partition=n, position=at, begin=self.starts[n], end=self.ends[n])
                for n, at in sorted(positions.items())
            ],
            records_read=self.budget.records_read,
            bytes_read=self.budget.bytes_read,
            stuck=dict(stuck),
        )


def browse(access: KafkaClients, topic: str, request: Browse) -> Page:
    """Reads one page of records. Raises `UnknownPartitionError` and `UnavailableError`."""
    budget = Budget(request.bytes_max, time.monotonic() + request.timeout_s)
    with access.admin() as admin:
        numbers = _partitions_to_read(admin, topic, request)
        pairs = [(topic, number) for number in numbers]
        starts = {n: o for (_, n), o in earliest_offsets(admin, pairs, request.timeout_s).items()}
        ends = {n: o for (_, n), o in end_offsets(admin, pairs, request.timeout_s).items()}
        if request.start == "newest":
            highs = {n: min(request.positions.get(n, ends[n]), ends[n]) for n in numbers}
            highs = {n: max(high, starts[n]) for n, high in highs.items()}
        else:
            lows = _first_offsets(admin, topic, request, starts, ends)
    keep = None if request.filter is None else compile_filter(request.filter)
    log = _Log(Reader(access, topic, budget, keep, request.careful), starts, ends, request)
    if request.start == "newest":
        return _read_newest(log, highs)
    return _read_forward(log, lows)


def _partitions_to_read(admin: AdminClient, topic: str, request: Browse) -> list[int]:
    known = partitions_of(admin, topic, request.timeout_s)
    if request.partitions is None:
        return known
    missing = sorted(set(request.partitions) - set(known))
    if missing:
        detail = f"{topic} has no partition {missing[0]}"
        raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
    return sorted(set(request.partitions))


def _first_offsets(
    admin: AdminClient,
    topic: str,
    request: Browse,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
) -> dict[int, int]:
    lows = dict(starts)
    if request.start == "offset":
        lows = dict.fromkeys(starts, request.value)
    elif request.start == "timestamp" and not set(starts) <= set(request.positions):
        pairs = [(topic, number) for number in starts]
        offsets = offsets_at(admin, pairs, request.value, request.timeout_s)
        lows = {n: ends[n] if at is None else at for (_, n), at in offsets.items()}
    lows |= {n: at for n, at in request.positions.items() if n in lows}
    return {n: min(max(low, starts[n]), ends[n]) for n, low in lows.items()}


def _read_forward(log: _Log, lows: Mapping[int, int]) -> Page:
    ends, limit = log.ends, log.request.limit
    ranges = {n: (lows[n], ends[n]) for n in lows}
    read = read_around(log.reader, ranges, log.request.skip, each_max=limit)
    taken, rest = _merge_messages(read.messages, limit, key=lambda m: _timestamp_ms(m[0]), at=0)
    positions = dict(lows)
    for number in lows:
        if rest[number]:
            positions[number] = rest[number][0].offset()
        elif number in read.done:
            positions[number] = ends[number]
        else:
            positions[number] = read.at[number]
    stuck = {n: read.at[n] for n in read.stuck}
    complete = all(positions[n] >= ends[n] for n in lows)
    return log.page(taken, positions, complete=complete, stuck=stuck)


def _read_newest(log: _Log, highs: Mapping[int, int]) -> Page:
    """Reads the newest records backwards in windows that grow.

    So a few large records cost as little as many small ones, and the page is filled even where the
    log has gaps or a filter leaves few records. A partition that is stuck ends this: what lies
    behind the place is newer than what would be read next.
    """
    starts, limit, budget = log.starts, log.request.limit, log.budget
    records: dict[int, list[Message]] = {n: [] for n in highs}
    lows = dict(highs)
    size = max(1, math.ceil(limit / len(highs)))
    bytes_max = budget.bytes_left
    stuck: dict[int, int] = {}
    while budget.spent() is None and not stuck:
        open_ = [n for n in lows if lows[n] > starts[n] and len(records[n]) < limit]
        if not open_:
            break
        ranges = {n: (_window_low(log, n, lows[n] - size), lows[n]) for n in open_}
        read = read_around(log.reader, ranges, log.request.skip)
        stuck = {n: read.at[n] for n in read.stuck}
        _prepend_window(records, lows, read, ranges)
        size = min(2 * size, _affordable_offsets(budget, len(open_)))
        if budget.spent() == "bytes" and lows == highs and max(_range_sizes(ranges)) > 1:
            # Not even the newest window fits the budget, so a smaller one is tried. A window of one
            # record always fits.
            size, budget.bytes_left = max(1, max(_range_sizes(ranges)) // 4), bytes_max
    taken, rest = _merge_messages(records, limit, key=lambda m: -_timestamp_ms(m[-1]), at=-1)
    positions = {n: rest[n][-1].offset() + 1 if rest[n] else lows[n] for n in lows}
    complete = all(positions[n] <= starts[n] for n in lows)
    return log.page(taken, positions, complete=complete, stuck=stuck)


def _window_low(log: _Log, number: int, low: int) -> int:
    """Where a window begins that should begin at `low`: not within a batch that is skipped."""
    for partition, first, after in log.request.skip:
        if partition == number and first < low < after:
            low = first
    return max(low, log.starts[number])


def _range_sizes(ranges: Mapping[int, tuple[int, int]]) -> list[int]:
    return [high - low for low, high in ranges.values()]


def _affordable_offsets(budget: Budget, partitions: int) -> int:
    """How many offsets of each partition the next window may have.

    Half of the bytes that are left should be enough for it, by the mean size so far: a window that
    is not read to its end is of no use.
    """
    if not budget.records_read:
        return WINDOW_MAX
    mean_bytes = max(1, budget.bytes_read // budget.records_read)
    return max(1, min(WINDOW_MAX, budget.bytes_left // (2 * mean_bytes * partitions)))


def _prepend_window(
    records: dict[int, list[Message]],
    lows: dict[int, int],
    read: Read,
    ranges: Mapping[int, tuple[int, int]],
) -> None:
    """Adds the records of windows that were read to their end. Others lack their newest records."""
    for number in read.done:
        records[number] = read.messages[number] + records[number]
        lows[number] = ranges[number][0]


def _merge_messages(
    queues: Mapping[int, list[Message]],
    limit: int,
    *,
    key: Callable[[list[Message]], int],
    at: Literal[0, -1],
) -> tuple[list[Message], dict[int, list[Message]]]:
    """Takes up to `limit` messages from one end of the queues, the one with the least `key` first.

    `at` is the end: 0 is the first message of a queue, −1 the last. Within a partition the order
    stays that of offsets, whatever the timestamps. Returns the messages, and what is left by queue.
    """
    rest = {number: list(queue) for number, queue in queues.items()}
    taken: list[Message] = []
    while len(taken) < limit and (waiting := [n for n, queue in rest.items() if queue]):
        number = min(waiting, key=lambda n: (key(rest[n]), n))
        taken.append(rest[number].pop(at))
    return taken, rest


def _timestamp_ms(message: Message) -> int:
    return int(message.timestamp()[1])


def produce(access: KafkaClients, topic: str, record: NewRecord) -> Produced:
    """Produces one record and waits until it is durable.

    Raises `UnknownPartitionError`, `RefusedError` (for a record that is too large, for example),
    and `UnavailableError`, after which the record may nevertheless have been written.
    """
    # The topic is looked up first, because producing to a deleted topic could create it.
    with access.admin() as admin:
        known = partitions_of(admin, topic, PRODUCE_TIMEOUT_S)
    if record.partition is not None and record.partition not in known:
        detail = f"{topic} has no partition {record.partition}"
        raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
    done = threading.Event()
    outcome: list[tuple[KafkaError | None, Message]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        outcome.append((error, message))
        done.set()

    place = {} if record.partition is None else {"partition": record.partition}
    with access.producer() as producer:
        producer.produce(
            topic,
            record.value,
            record.key,
            headers=list(record.headers),
            on_delivery=delivered,
            **place,
        )
        deadline = time.monotonic() + PRODUCE_TIMEOUT_S + 1.0
        while not done.is_set() and time.monotonic() < deadline:
            producer.poll(0.05)
        if not outcome:
            name = "REQUEST_TIMED_OUT"
            raise UnavailableError(name, "No answer: the record may have been written.")
        error, message = outcome[0]
        if error is not None:
            raise error_of(error)
    return Produced(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp_of(message),
    )

"""Looking at a topic's records, and producing one.

Nothing here joins a group or commits an offset: looking changes nothing. Every read has limits of
records, bytes and time; where one is reached the page says which, and how to go on.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka.admin import AdminClient

from provisioning.kafka.errors import UnavailableError, UnknownPartitionError
from provisioning.kafka.filters import Filter, compile_filter
from provisioning.kafka.shapes import Browse, NewRecord, Page, Produced, Reached
from provisioning.kafka.worker.clients import PRODUCE_TIMEOUT_S, Access
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.offsets import (
    earliest_offsets,
    end_offsets,
    offsets_at,
    partitions_of,
)
from provisioning.kafka.worker.ranges import Budget, Read, read_ranges
from provisioning.kafka.worker.records import record_of, timestamp_of

# Offsets of a window that are read at once, looking backwards.
WINDOW_MAX = 100_000


@dataclass(frozen=True)
class _Log:
    """The bounds of a topic's partitions, and what a read of it may give and cost."""

    topic: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    wanted: Browse
    budget: Budget
    keep: Filter | None

    def page(self, taken: list[Message], positions: Mapping[int, int], *, complete: bool) -> Page:
        """The page that was read up to `positions`."""
        stopped = "limit" if len(taken) >= self.wanted.limit else self.budget.spent() or "limit"
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
        )


def browse(access: Access, topic: str, wanted: Browse) -> Page:
    """Reads one page. Raises `UnknownPartitionError` and `UnavailableError`."""
    budget = Budget(wanted.bytes_max, time.monotonic() + wanted.timeout_s)
    with access.admin() as admin:
        numbers = _partitions(admin, topic, wanted)
        pairs = [(topic, number) for number in numbers]
        starts = {n: o for (_, n), o in earliest_offsets(admin, pairs, wanted.timeout_s).items()}
        ends = {n: o for (_, n), o in end_offsets(admin, pairs, wanted.timeout_s).items()}
        if wanted.start == "newest":
            highs = {n: min(wanted.positions.get(n, ends[n]), ends[n]) for n in numbers}
            highs = {n: max(high, starts[n]) for n, high in highs.items()}
        else:
            lows = _lows(admin, topic, wanted, starts, ends)
    keep = None if wanted.filter is None else compile_filter(wanted.filter)
    log = _Log(topic, starts, ends, wanted, budget, keep)
    with access.consumer() as consumer:
        if wanted.start == "newest":
            return _newest(consumer, log, highs)
        return _forward(consumer, log, lows)


def _partitions(admin: AdminClient, topic: str, wanted: Browse) -> list[int]:
    known = partitions_of(admin, topic, wanted.timeout_s)
    if wanted.partitions is None:
        return known
    missing = sorted(set(wanted.partitions) - set(known))
    if missing:
        detail = f"{topic} has no partition {missing[0]}"
        raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
    return sorted(set(wanted.partitions))


def _lows(
    admin: AdminClient,
    topic: str,
    wanted: Browse,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
) -> dict[int, int]:
    lows = dict(starts)
    if wanted.start == "offset":
        lows = dict.fromkeys(starts, wanted.value)
    elif wanted.start == "timestamp" and not set(starts) <= set(wanted.positions):
        pairs = [(topic, number) for number in starts]
        found = offsets_at(admin, pairs, wanted.value, wanted.timeout_s)
        lows = {n: ends[n] if at is None else at for (_, n), at in found.items()}
    lows |= {n: at for n, at in wanted.positions.items() if n in lows}
    return {n: min(max(low, starts[n]), ends[n]) for n, low in lows.items()}


def _forward(consumer: Consumer, log: _Log, lows: Mapping[int, int]) -> Page:
    ends, limit = log.ends, log.wanted.limit
    ranges = {n: (lows[n], ends[n]) for n in lows}
    read = read_ranges(consumer, log.topic, ranges, log.budget, each_max=limit, keep=log.keep)
    taken, rest = _merge(read.messages, limit, key=lambda m: _timestamp(m[0]), at=0)
    positions = dict(lows)
    for number in lows:
        if rest[number]:
            positions[number] = rest[number][0].offset()
        elif number in read.done:
            positions[number] = ends[number]
        else:
            positions[number] = read.at[number]
    return log.page(taken, positions, complete=all(positions[n] >= ends[n] for n in lows))


def _newest(consumer: Consumer, log: _Log, highs: Mapping[int, int]) -> Page:
    """Goes backwards in windows that grow, so that few large records cost as little as many small
    ones, and a log with gaps, or of which a filter leaves little, still fills the page.
    """
    starts, limit, budget = log.starts, log.wanted.limit, log.budget
    found: dict[int, list[Message]] = {n: [] for n in highs}
    lows = dict(highs)
    size = max(1, math.ceil(limit / len(highs)))
    bytes_max = budget.bytes_left
    while budget.spent() is None:
        open_ = [n for n in lows if lows[n] > starts[n] and len(found[n]) < limit]
        if not open_:
            break
        ranges = {n: (max(starts[n], lows[n] - size), lows[n]) for n in open_}
        read = read_ranges(consumer, log.topic, ranges, budget, keep=log.keep)
        _prepend(found, lows, read, ranges)
        size = min(2 * size, _affordable(budget, len(open_)))
        if budget.spent() == "bytes" and lows == highs and max(_sizes(ranges)) > 1:
            # Not even the newest window fits: a smaller one. A single record always does.
            size, budget.bytes_left = max(1, max(_sizes(ranges)) // 4), bytes_max
    taken, rest = _merge(found, limit, key=lambda m: -_timestamp(m[-1]), at=-1)
    positions = {n: rest[n][-1].offset() + 1 if rest[n] else lows[n] for n in lows}
    return log.page(taken, positions, complete=all(positions[n] <= starts[n] for n in lows))


def _sizes(ranges: Mapping[int, tuple[int, int]]) -> list[int]:
    return [high - low for low, high in ranges.values()]


def _affordable(budget: Budget, partitions: int) -> int:
    """Offsets of each partition that half of what is left should pay for: a window that is not
    read to its end is read in vain.
    """
    if not budget.records_read:
        return WINDOW_MAX
    mean_bytes = max(1, budget.bytes_read // budget.records_read)
    return max(1, min(WINDOW_MAX, budget.bytes_left // (2 * mean_bytes * partitions)))


def _prepend(
    found: dict[int, list[Message]],
    lows: dict[int, int],
    read: Read,
    ranges: Mapping[int, tuple[int, int]],
) -> None:
    """A window that was not read to its end is dropped: its newest records would be missing."""
    for number in read.done:
        found[number] = read.messages[number] + found[number]
        lows[number] = ranges[number][0]


def _merge(
    queues: Mapping[int, list[Message]],
    limit: int,
    *,
    key: Callable[[list[Message]], int],
    at: Literal[0, -1],
) -> tuple[list[Message], dict[int, list[Message]]]:
    """Takes up to `limit` messages from the queues' ends (`at`), the least `key` first.

    The order within a partition stays that of offsets, whatever its timestamps say.
    """
    rest = {number: list(queue) for number, queue in queues.items()}
    taken: list[Message] = []
    while len(taken) < limit and (waiting := [n for n, queue in rest.items() if queue]):
        number = min(waiting, key=lambda n: (key(rest[n]), n))
        taken.append(rest[number].pop(at))
    return taken, rest


def _timestamp(message: Message) -> int:
    return int(message.timestamp()[1])


def produce(access: Access, topic: str, record: NewRecord) -> Produced:
    """Produces one record and waits until it is durable.

    Raises `UnknownPartitionError`, `RefusedError` (too large, say) and `UnavailableError`: then
    it may have been written all the same.
    """
    # The topic is asked for first: producing to one that is gone could create it.
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
            raise UnavailableError(name, "No answer: it may have been written.")
        error, message = outcome[0]
        if error is not None:
            raise error_of(error)
    return Produced(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp_of(message),
    )

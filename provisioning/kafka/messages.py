"""Looking at a topic's records, and producing one.

Nothing here joins a group or commits an offset: looking changes nothing. Every read has limits of
records, bytes and time; where one is reached the page says which, and how to go on.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka.admin import AdminClient

from provisioning.kafka.clients import PRODUCE_TIMEOUT_S, Access
from provisioning.kafka.errors import (
    UnavailableError,
    UnknownPartitionError,
    error_of,
)
from provisioning.kafka.offsets import earliest_offsets, end_offsets, offsets_at, partitions_of
from provisioning.kafka.ranges import Budget, Read, read_ranges
from provisioning.kafka.records import Record, record_of

TIMEOUT_S = 5.0
BYTES_MAX = 8 * 1024 * 1024
LIMIT_MAX = 500


@dataclass(frozen=True)
class Browse:
    """What to read.

    `start`: `newest` gives the last records, newest first; the others go forward, with `value` an
    offset or a moment (Unix ms). `positions` go on where a page ended; they win over `start`'s
    place, and keep its direction. `partitions`: None for all.
    """

    start: Literal["newest", "oldest", "offset", "timestamp"] = "newest"
    value: int = 0
    partitions: Sequence[int] | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    limit: int = 50
    bytes_max: int = BYTES_MAX
    timeout_s: float = TIMEOUT_S


@dataclass(frozen=True)
class Page:
    """Records, and where to go on (None: nothing is left in this direction).

    `stopped`: `limit`, `bytes`, `time`, or `end` where all was read.
    """

    records: list[Record]
    positions: dict[int, int] | None
    stopped: str


@dataclass(frozen=True)
class NewRecord:
    """A record to produce. Without `partition` the key decides, as with Java's clients."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None


class Produced(TypedDict):
    """Where a record went."""

    partition: int
    offset: int
    timestamp_ms: int | None


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
    with access.consumer() as consumer:
        if wanted.start == "newest":
            return _newest(consumer, topic, starts, highs, wanted.limit, budget)
        return _forward(consumer, topic, lows, ends, wanted.limit, budget)


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


def _forward(
    consumer: Consumer,
    topic: str,
    lows: Mapping[int, int],
    ends: Mapping[int, int],
    limit: int,
    budget: Budget,
) -> Page:
    ranges = {n: (lows[n], ends[n]) for n in lows}
    read = read_ranges(consumer, topic, ranges, budget, each_max=limit)
    taken, rest = _merge(read.messages, limit, key=lambda m: _timestamp(m[0]), at=0)
    positions = dict(lows)
    for number in lows:
        if rest[number]:
            positions[number] = rest[number][0].offset()
        elif number in read.done:
            positions[number] = ends[number]
        elif read.messages[number]:
            positions[number] = read.messages[number][-1].offset() + 1
    if all(positions[n] >= ends[n] for n in lows):
        return Page([record_of(m) for m in taken], None, "end")
    stopped = "limit" if len(taken) >= limit else budget.spent() or "limit"
    return Page([record_of(m) for m in taken], positions, stopped)


def _newest(
    consumer: Consumer,
    topic: str,
    starts: Mapping[int, int],
    highs: Mapping[int, int],
    limit: int,
    budget: Budget,
) -> Page:
    """Goes backwards in windows that grow, so that few large records cost as little as many small
    ones, and a log with gaps still fills the page.
    """
    found: dict[int, list[Message]] = {n: [] for n in highs}
    lows = dict(highs)
    size = max(1, math.ceil(limit / len(highs)))
    bytes_max = budget.bytes_left
    while budget.spent() is None:
        open_ = [n for n in lows if lows[n] > starts[n] and len(found[n]) < limit]
        if not open_:
            break
        ranges = {n: (max(starts[n], lows[n] - size), lows[n]) for n in open_}
        read = read_ranges(consumer, topic, ranges, budget)
        _prepend(found, lows, read, ranges)
        size *= 2
        if budget.spent() == "bytes" and not any(found.values()) and size > 2:
            # Not even the newest window fits: a smaller one. A single record always does.
            size, budget.bytes_left = max(1, size // 8), bytes_max
    taken, rest = _merge(found, limit, key=lambda m: -_timestamp(m[-1]), at=-1)
    positions = {n: rest[n][-1].offset() + 1 if rest[n] else lows[n] for n in lows}
    if all(positions[n] <= starts[n] for n in lows):
        return Page([record_of(m) for m in taken], None, "end")
    stopped = "limit" if len(taken) >= limit else budget.spent() or "limit"
    return Page([record_of(m) for m in taken], positions, stopped)


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
    written = record_of(message)
    return Produced(
        partition=written["partition"],
        offset=written["offset"],
        timestamp_ms=written["timestamp_ms"],
    )

"""Reads pages of a topic's records.

Reading changes nothing: it joins no group and commits no offset. Every read has limits of records,
bytes and time. Where one is reached, the page says which, and where the next page begins.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.filters import compile_filter
from provisioning.kafka.offsets import (
    check_partitions,
    earliest_offsets,
    end_offsets,
    offsets_at,
    partitions_of,
)
from provisioning.kafka.ranges import Budget, Read, Reader
from provisioning.kafka.shapes import Browse, Damaged, Page, Reached, Record

# The most offsets of a partition in one window, when reading backwards.
WINDOW_MAX = 100_000


def browse(access: Access, topic: str, request: Browse) -> Page:
    """Reads one page of records. Raises `UnknownPartitionError`."""
    keep = None if request.filter is None else compile_filter(request.filter)
    deadline = time.monotonic() + request.timeout_s
    budget = Budget(request.bytes_max, deadline, request.page_bytes_max)
    with access.client() as client:
        numbers = _partitions_to_read(client, topic, request)
        pairs = [(topic, number) for number in numbers]
        starts = {n: o for (_, n), o in earliest_offsets(client, pairs, request.timeout_s).items()}
        ends = {n: o for (_, n), o in end_offsets(client, pairs, request.timeout_s).items()}
        reader = Reader(access, client, topic, budget, keep, request.shown_max)
        log = _Log(reader, starts, ends, request)
        if request.start == "newest":
            highs = {n: min(request.positions.get(n, ends[n]), ends[n]) for n in numbers}
            return _read_newest(log, {n: max(high, starts[n]) for n, high in highs.items()})
        return _read_forward(log, _first_offsets(client, topic, request, starts, ends))


@dataclass(frozen=True)
class _Log:
    """A topic with its partitions' offsets, the request of a page, and the budget of reading it."""

    reader: Reader
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    request: Browse
    # The batches that could not be decoded, by partition and first offset.
    damaged: dict[tuple[int, int], Damaged] = field(default_factory=dict)

    @property
    def budget(self) -> Budget:
        """The budget of reading it."""
        return self.reader.budget

    def note_damage(self, batches: Iterable[Damaged]) -> None:
        """Remembers batches that could not be decoded, once each."""
        for batch in batches:
            self.damaged[batch["partition"], batch["first_offset"]] = batch

    def page(self, taken: list[Record], positions: Mapping[int, int], *, complete: bool) -> Page:
        """Makes the page of the records `taken`. `complete`: nothing is left in this direction."""
        stopped = "limit" if len(taken) >= self.request.limit else self.budget.spent() or "limit"
        return Page(
            records=taken,
            positions=None if complete else dict(positions),
            stopped="end" if complete else stopped,
            reached=[
                Reached(partition=n, position=at, begin=self.starts[n], end=self.ends[n])
                for n, at in sorted(positions.items())
            ],
            records_read=self.budget.records_read,
            bytes_read=self.budget.bytes_read,
            damaged=self._damaged_within(positions),
        )

    def _damaged_within(self, positions: Mapping[int, int]) -> list[Damaged]:
        """The damaged batches among the offsets of the page, by partition and offset."""
        backwards = self.request.start == "newest"
        return [
            batch
            for (number, first), batch in sorted(self.damaged.items())
            if (
                batch["next_offset"] > positions[number] if backwards else first < positions[number]
            )
        ]


def _partitions_to_read(client: _core.KafkaClient, topic: str, request: Browse) -> list[int]:
    known = partitions_of(client, topic, request.timeout_s)
    if request.partitions is None:
        return known
    check_partitions(topic, request.partitions, known)
    return sorted(set(request.partitions))


def _first_offsets(
    client: _core.KafkaClient,
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
        offsets = offsets_at(client, pairs, request.value, request.timeout_s)
        lows = {n: ends[n] if at is None else at for (_, n), at in offsets.items()}
    lows |= {n: at for n, at in request.positions.items() if n in lows}
    return {n: min(max(low, starts[n]), ends[n]) for n, low in lows.items()}


def _read_forward(log: _Log, lows: Mapping[int, int]) -> Page:
    ends, limit = log.ends, log.request.limit
    ranges = {n: (lows[n], ends[n]) for n in lows}
    read = log.reader.read(ranges, first=limit, kept=limit)
    log.note_damage(read.damaged)
    taken, rest = _merge_records(read.records, limit, key=lambda queue: _moment(queue[0]), at=0)
    positions = dict(lows)
    for number in lows:
        if rest[number]:
            positions[number] = rest[number][0]["offset"]
        elif number in read.done:
            positions[number] = ends[number]
        else:
            positions[number] = read.at[number]
    complete = all(positions[n] >= ends[n] for n in lows)
    return log.page(taken, positions, complete=complete)


def _read_newest(log: _Log, highs: Mapping[int, int]) -> Page:
    """Reads the newest records backwards in windows that grow.

    So a few large records cost as little as many small ones, and the page is filled even where the
    log has gaps or a filter leaves few records.
    """
    starts, limit, budget = log.starts, log.request.limit, log.budget
    records: dict[int, deque[Record]] = {n: deque() for n in highs}
    lows = dict(highs)
    size = max(1, math.ceil(limit / len(highs)))
    bytes_max, shown_max = budget.bytes_left, budget.shown_left
    while budget.spent() is None:
        open_ = [n for n in lows if lows[n] > starts[n] and len(records[n]) < limit]
        if not open_:
            break
        ranges = {n: (max(lows[n] - size, starts[n]), lows[n]) for n in open_}
        read = log.reader.read(ranges, first=None, kept=limit)
        log.note_damage(read.damaged)
        _prepend_window(records, lows, read, ranges)
        size = min(2 * size, _affordable_offsets(budget, len(open_)))
        largest = max(high - low for low, high in ranges.values())
        if budget.spent() == "bytes" and lows == highs and largest > 1:
            # Not even the newest window fits the budget, so a smaller one is tried. A window of one
            # record always fits.
            size, budget.bytes_left = max(1, largest // 4), bytes_max
            budget.shown_left = shown_max
    taken, rest = _merge_records(records, limit, key=lambda queue: -_moment(queue[-1]), at=-1)
    positions = {n: rest[n][-1]["offset"] + 1 if rest[n] else lows[n] for n in lows}
    complete = all(positions[n] <= starts[n] for n in lows)
    return log.page(taken, positions, complete=complete)


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
    records: dict[int, deque[Record]],
    lows: dict[int, int],
    read: Read,
    ranges: Mapping[int, tuple[int, int]],
) -> None:
    """Adds the records of windows that were read to their end. Others lack their newest records."""
    for number in read.done:
        records[number].extendleft(reversed(read.records[number]))
        low, _ = ranges[number]
        lows[number] = read.records[number][0]["offset"] if number in read.trimmed else low


def _merge_records(
    queues: Mapping[int, deque[Record]],
    limit: int,
    *,
    key: Callable[[deque[Record]], int],
    at: Literal[0, -1],
) -> tuple[list[Record], dict[int, deque[Record]]]:
    """Takes up to `limit` records from one end of the queues, the one with the least `key` first.

    `at` is the end: 0 is the first record of a queue, −1 the last. Within a partition the order
    stays that of offsets, whatever the timestamps. Returns the records, and what is left by queue.
    """
    rest = {number: deque(queue) for number, queue in queues.items()}
    taken: list[Record] = []
    while len(taken) < limit and (waiting := [n for n, queue in rest.items() if queue]):
        number = min(waiting, key=lambda n: (key(rest[n]), n))
        taken.append(rest[number].popleft() if at == 0 else rest[number].pop())
    return taken, rest


def _moment(record: Record) -> int:
    moment = record["timestamp_ms"]
    return -1 if moment is None else moment

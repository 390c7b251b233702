"""That nobody pays for keeping what was not there yet: storage and partitions, minute by minute.

A batch cannot have been stored before its client had sent it, so what clients had sent when a
minute began bounds what may be billed for that minute, partition by partition. Rows are read from
the usage files themselves, each identity once.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow.parquet as pq

from tests.metering.proof.stored import Place
from tests.metering.proof.tenants import Tenant
from tests.metering.proof.usage_folder import UsageFile

STORAGE, PARTITIONS = "storage_byte_minutes", "partition_minutes"
MINUTE_MS = 60_000


@dataclass(frozen=True)
class TimeVerdict:
    """`billed` and `bound` in units of each meter, over the windows that were billed."""

    billed: Mapping[str, int]
    bound: Mapping[str, int]
    over: int
    """Beyond the bound, summed over windows and partitions."""
    short_when_quiet: int
    """Byte-minutes below the bound in windows in which nothing changed: there it is exact."""
    billed_when_quiet: int
    """Byte-minutes that were billed for those windows."""


@dataclass(frozen=True)
class Window:
    """A billed row of a meter of time."""

    meter: str
    topic: str
    partition: int | None
    start_ms: int
    end_ms: int
    quantity: int


def read_windows(files: Iterable[UsageFile], tenant: Tenant) -> set[Window]:
    """The billed rows by time of a tenant; equal rows of several files are one."""
    rows = set()
    columns = ["meter", "topic_id", "partition", "window_start_ms", "window_end_ms", "quantity"]
    for file in filter(UsageFile.is_sound, files):
        table = pq.read_table(file.data, columns=["cluster_id", "billed", *columns])
        for row in table.to_pylist():
            mine = row["cluster_id"] == tenant.cluster_id and row["billed"]
            if mine and row["meter"] in {STORAGE, PARTITIONS}:
                rows.add(Window(*(row[name] for name in columns)))
    return rows


def judge_time(
    files: Iterable[UsageFile],
    tenant: Tenant,
    stored: Mapping[Place, int],
    partitions: int,
    created_ms: int,
    quiet_ms: int,
) -> TimeVerdict:
    """Holds a tenant's time against what was sent. `stored`: by the scan, when all was over.

    Every topic has `partitions`, and none was there before `created_ms`. Nothing was sent any more
    from `quiet_ms` on.
    """
    kept = sent_by_place(tenant, stored)
    billed: dict[str, int] = defaultdict(int)
    bound: dict[str, int] = defaultdict(int)
    over = short = kept_quietly = 0
    for window in read_windows(files, tenant):
        minutes = range(window.start_ms, window.end_ms, MINUTE_MS)
        if window.meter == STORAGE:
            place = (window.topic, window.partition or 0)
            most = sum(kept[place].at(minute) for minute in minutes) if place in kept else 0
        else:
            most = partitions * sum(minute >= created_ms for minute in minutes)
        billed[window.meter] += window.quantity
        bound[window.meter] += most
        over += max(0, window.quantity - most)
        if window.start_ms >= quiet_ms:
            short += max(0, most - window.quantity)
            kept_quietly += window.quantity if window.meter == STORAGE else 0
    return TimeVerdict(billed, bound, over, short, kept_quietly)


class Growth:
    """How much of a partition had been sent at a time, and no more than was stored in the end."""

    def __init__(self, sent: list[tuple[int, int]], most: int) -> None:
        ordered = sorted(sent)
        self._times = [at_ms for at_ms, _ in ordered]
        self._sums = list(itertools.accumulate((size for _, size in ordered), initial=0))
        self._most = most

    def at(self, at_ms: int) -> int:
        """Bytes that had been sent before a time."""
        return min(self._most, self._sums[bisect.bisect_left(self._times, at_ms)])


def sent_by_place(tenant: Tenant, stored: Mapping[Place, int]) -> dict[tuple[str, int], Growth]:
    """What was sent to each partition, by time."""
    sent: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for one in tenant.seen.sent:
        topic = tenant.topics[one.topic] if isinstance(one.topic, str) else one.topic.hex
        sent[topic, one.partition].append((one.at_ms, one.size))
    most: dict[tuple[str, int], int] = defaultdict(int)
    for place, size in stored.items():
        most[place.topic, place.partition] += size
    return {place: Growth(chunks, most[place]) for place, chunks in sent.items()}

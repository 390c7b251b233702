"""That `broker_seconds` are those for which brokers ran, broker by broker, as seen from outside.

Processes are looked at again and again, and so are the cluster's records of incarnations. A row may
not have more seconds of its window than its broker ran, or was not yet known to have ended. It has
all of a window in which its broker ran throughout, and some time beyond; where it began or ended,
some may be missing.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow.parquet as pq

from provisioning.cell.drivers.process import Identity, identify_process
from tests.brokers.lanes import FENCED
from tests.brokers.logscan import read_metadata
from tests.metering.proof.counting_proxy import unix_ms
from tests.metering.proof.tenants import Cell, Tenant
from tests.metering.proof.usage_folder import UsageFile, UsageFolder

BROKER_SECONDS = "broker_seconds"
LOOK_S = 0.1
TICK_MS = 10
# How late an agent may look after a window's end, when the machine is busy and agents are killed.
LOOK_LATE_MS = 10_000
# (incarnation, start and end of the window)
Share = tuple[int, int, int]
Window = tuple[int, int]


@dataclass
class Seen:
    """Something that was there at some looks. `since_ms`: when it may have begun at the earliest;
    `first_ms`, `last_ms`: of looks at which it was there; `until_ms`: of the one after them."""

    slot: int
    since_ms: int
    first_ms: int
    last_ms: int
    until_ms: int | None = None
    was_fenced: bool = False
    """Whether others ended it."""


@dataclass
class Lives:
    """The processes of a tenant's brokers, and its incarnations."""

    processes: dict[tuple[int, Identity], Seen] = field(default_factory=dict)
    incarnations: dict[int, Seen] = field(default_factory=dict)

    def look(self, pids: Mapping[int, int], records: Mapping[str, Any]) -> None:
        """Notes what there is now. `records`: of the cluster's metadata, by their keys."""
        now_ms = unix_ms()
        identities = {slot: identify_process(pid) for slot, pid in pids.items()}
        there = {(slot, one) for slot, one in identities.items() if one is not None}
        for slot, one in there:
            ran_ms = process_start_ms(one, now_ms)
            seen = self.processes.setdefault((slot, one), Seen(slot, ran_ms, now_ms, now_ms))
            seen.last_ms = now_ms
        note_ends((seen for key, seen in self.processes.items() if key not in there), now_ms)
        states = {
            int(key.partition("/")[2]): (record["slot"], record["state"])
            for key, record in records.items()
            if key.startswith("incarnation/")
        }
        live = {number for number, (_, state) in states.items() if state == "live"}
        for number in live:
            first = Seen(states[number][0], now_ms, now_ms, now_ms)
            self.incarnations.setdefault(number, first).last_ms = now_ms
        for number, seen in self.incarnations.items():
            _, state = states.get(number, (seen.slot, ""))
            seen.was_fenced |= state in FENCED
        note_ends((seen for one, seen in self.incarnations.items() if one not in live), now_ms)

    def process_of(self, incarnation: Seen) -> Seen | None:
        """The last process of the incarnation's slot that began before it was seen."""
        earlier = [
            process
            for process in self.processes.values()
            if process.slot == incarnation.slot and process.since_ms <= incarnation.first_ms
        ]
        return max(earlier, key=lambda process: process.since_ms, default=None)


@dataclass(frozen=True)
class LivesVerdict:
    """Seconds of a tenant's brokers, by slot where nothing else is said."""

    billed: Mapping[int, int]
    ran: Mapping[int, int]
    """In the windows that were measured."""
    over: int
    """Billed beyond what ran, summed over windows and incarnations."""
    short: int
    """Not billed, of windows in which a broker ran throughout."""
    short_at_ends: int
    """Not billed, of windows in which one began or ended."""
    incarnations: int
    fenced: int
    """Incarnations that others ended: without a fault, too, where the machine is too slow."""

    @property
    def wrong(self) -> int:
        """Seconds that are wrong without an excuse."""
        return self.over + self.short

    def details(self) -> dict[str, Any]:
        """Figures for whoever reads the result."""
        return {
            "billed": {f"slot {slot}": size for slot, size in sorted(self.billed.items())},
            "ran": {f"slot {slot}": size for slot, size in sorted(self.ran.items())},
            "incarnations": self.incarnations,
            "fenced": self.fenced,
            "over": self.over,
            "short": self.short,
            "short_at_ends": self.short_at_ends,
        }


class LifeWatch:
    """Looks at all brokers of a cell while it is entered."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self.lives: dict[str, Lives] = {tenant.cluster_id: Lives() for tenant in cell.tenants}
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lives", daemon=True)

    def _run(self) -> None:
        while not self._leaving.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        """Looks once."""
        for tenant in self._cell.tenants:
            records = read_metadata(self._cell.metadata, tenant.cluster_id)
            self.lives[tenant.cluster_id].look(tenant.pids(), records)

    def __enter__(self) -> Self:
        """Begins to look."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Looks for the last time."""
        self._leaving.set()
        self._thread.join()
        self.look()


def note_ends(gone: Iterable[Seen], now_ms: int) -> None:
    """Notes that these are not there any more."""
    for seen in gone:
        if seen.until_ms is None:
            seen.until_ms = now_ms


def process_start_ms(process: Identity, now_ms: int) -> int:
    """When a process began, Unix time."""
    ticks = int(process.started.rpartition("/")[2])
    ran_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000 - ticks * TICK_MS
    return now_ms - ran_ms - TICK_MS


def judge_lives(usage: UsageFolder, tenant: Tenant, lives: Lives) -> LivesVerdict:
    """Holds a tenant's broker seconds against what was seen."""
    rows = read_shares(usage.files(), tenant)
    return compare_lives(rows, read_windows(usage.root, tenant), lives)


def compare_lives(rows: Mapping[Share, int], windows: set[Window], lives: Lives) -> LivesVerdict:
    """Compares rows with what was seen. `windows`: those that were measured."""
    slots = {number: seen.slot for number, seen in lives.incarnations.items()}
    billed: Counter[int] = Counter()
    ran: Counter[int] = Counter()
    over = short = short_at_ends = 0
    for (number, start_ms, end_ms), seconds in rows.items():
        billed[slots.get(number, -1)] += seconds
        most = 0
        if (start_ms, end_ms) in windows and number in lives.incarnations:
            most = overlap_ms(*longest(lives, number), start_ms, end_ms) // 1000
        over += max(0, seconds - most)
    for number in lives.incarnations:
        first_ms, last_ms = shortest(lives, number)
        for start_ms, end_ms in windows:
            lived_ms = overlap_ms(first_ms, last_ms, start_ms, end_ms)
            ran[slots[number]] += lived_ms // 1000
            missing = max(0, lived_ms // 1000 - rows.get((number, start_ms, end_ms), 0))
            # Agents look now and then whether it runs.
            if lived_ms == end_ms - start_ms and last_ms >= end_ms + LOOK_LATE_MS:
                short += missing
            else:
                short_at_ends += missing
    fenced = sum(seen.was_fenced for seen in lives.incarnations.values())
    starts = len(lives.incarnations)
    return LivesVerdict(billed, ran, over, short, short_at_ends, starts, fenced)


def longest(lives: Lives, number: int) -> tuple[int, int]:
    """The time in which an incarnation may have run, or was not yet known to have ended."""
    seen = lives.incarnations[number]
    process = lives.process_of(seen)
    if process is None:
        return 0, 0
    ends = [unix_ms() if one.until_ms is None else one.until_ms for one in (seen, process)]
    return process.since_ms, max(ends)


def shortest(lives: Lives, number: int) -> tuple[int, int]:
    """The time in which an incarnation has run for sure."""
    seen = lives.incarnations[number]
    process = lives.process_of(seen)
    if process is None:
        return 0, 0
    return max(process.first_ms, seen.first_ms), min(process.last_ms, seen.last_ms)


def overlap_ms(first_ms: int, last_ms: int, start_ms: int, end_ms: int) -> int:
    """How much two spans of time have in common."""
    return max(0, min(last_ms, end_ms) - max(first_ms, start_ms))


def read_shares(files: Iterable[UsageFile], tenant: Tenant) -> Mapping[Share, int]:
    """The broker seconds of a tenant's rows; equal rows of several files are one."""
    columns = ["incarnation", "window_start_ms", "window_end_ms", "quantity"]
    rows = set()
    for file in filter(UsageFile.is_sound, files):
        for row in pq.read_table(file.data, columns=["cluster_id", "meter", *columns]).to_pylist():
            if (row["cluster_id"], row["meter"]) == (tenant.cluster_id, BROKER_SECONDS):
                rows.add(tuple(row[name] for name in columns))
    shares: defaultdict[Share, int] = defaultdict(int)
    for number, start_ms, end_ms, seconds in rows:
        shares[number, start_ms, end_ms] += seconds
    return shares


def read_windows(usage: Path, tenant: Tenant) -> set[Window]:
    """The windows of a tenant's time that were measured."""
    slots = usage.glob(f"v1/cell=*/slots/{tenant.cluster_id}/*.json")
    said = [json.loads(slot.read_bytes()) for slot in slots]
    return {(slot["window_start_ms"], slot["window_end_ms"]) for slot in said}

"""A cluster and its metering agents in a few lines, which write real usage files.

The cluster's lanes are lists of blocks, and the truth is their sum. Agents follow the contract of
`docs/reference/usage-files.md` and nothing else: each file goes on where the agent's progress ends,
progress is shared and the last writer of it wins, and an agent may die between any two of its
writes. What reaches the roll-up and the proof of completeness are bytes under keys, as in service.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from metering.events.keys import data_key, manifest_key
from metering.events.manifests import (
    ClusterEntry,
    LaneEntry,
    StorageEntry,
    UsageManifest,
    encode_manifest,
)
from metering.events.records import BLOCKS_VERSION, USAGE_SCHEMA, Meter, encode_usage
from metering.events.slots import Slot, SlotRow
from metering.events.times import HOUR_MS, MINUTE_MS, ceil_to, floor_to
from tests.metering.properties.folder import MemoryStore, sha256_of

CELL, CLUSTER, ORGANIZATION = "local", "cl_1", "org_1"
TOPIC = "0123456789abcdef0123456789abcdef"
START_MS = floor_to(1_800_000_000_000, HOUR_MS) + 40 * MINUTE_MS
# Clocks of brokers and agents differ by no more: half of the margin, in both directions.
SKEW_MS = 25_000

# (meter, principal, start of the hour) → quantity
Quantities = Counter[tuple[str, str | None, int]]


@dataclass
class Block:
    """One row of usage in a block of its own."""

    sequence: int
    written_at_ms: int
    meter: Meter
    principal: str
    quantity: int
    cumulative: int | None


@dataclass
class Lane:
    """One start of the broker."""

    incarnation: int
    started_at_ms: int
    blocks: list[Block] = field(default_factory=list)
    ended: bool = False
    handed: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Read:
    """How far a lane was read."""

    sequence: int
    until_ms: int
    ended: bool = False


@dataclass(frozen=True)
class Progress:
    """What an agent knows to be written down."""

    as_of_ms: int | None = None
    lanes: dict[int, Read] = field(default_factory=dict)
    storage_until_ms: int | None = None


class Cluster:
    """A cluster whose broker writes blocks, and agents that read them. See the module."""

    def __init__(self, agents: int) -> None:
        self.now_ms = START_MS
        self.lanes: list[Lane] = []
        self.store = MemoryStore()
        self.slots: dict[int, Slot] = {}
        self.files = 0
        self.saved = Progress()
        self.agents = [Progress() for _ in range(agents)]
        self.start()

    def wait(self, ms: int) -> None:
        """Lets time pass."""
        self.now_ms += ms

    def start(self) -> None:
        """A broker starts; the one before it ended."""
        if self.lanes:
            self.lanes[-1].ended = True
        self.lanes.append(Lane(len(self.lanes) + 1, self.now_ms))

    def use(self, meter: Meter, principal: str, quantity: int, skew_ms: int) -> None:
        """A block with one row; the broker's clock is off by `skew_ms`."""
        lane = self.lanes[-1]
        last = lane.blocks[-1] if lane.blocks else None
        written_at_ms = max(self.now_ms + skew_ms, last.written_at_ms if last else 0)
        cumulative = None
        if meter is Meter.EGRESS_BYTES:
            lane.handed[principal] += quantity
            cumulative = lane.handed[principal]
        # Sequences that hold no usage are passed over: a block of another kind stands between.
        sequence = (last.sequence if last else 0) + 1 + quantity % 2
        lane.blocks.append(Block(sequence, written_at_ms, meter, principal, quantity, cumulative))

    def truth(self) -> Quantities:
        """The true usage; of storage, what the slots hold."""
        sums: Quantities = Counter()
        for lane in self.lanes:
            for block in lane.blocks:
                hour_ms = floor_to(block.written_at_ms, HOUR_MS)
                sums[str(block.meter), block.principal, hour_ms] += block.quantity
        reached = ceil_to(START_MS, MINUTE_MS)
        for minute_ms in range(reached, floor_to(self.now_ms, MINUTE_MS), MINUTE_MS):
            hour_ms = floor_to(minute_ms, HOUR_MS)
            sums[str(Meter.STORAGE_BYTE_MINUTES), None, hour_ms] += stored_at(minute_ms)
        return sums

    def restart_agent(self, number: int) -> None:
        """Restarts an agent, from the progress that was saved last."""
        self.agents[number] = self.saved

    def emit(self, number: int, writes: int = 3, blocks_max: int | None = None) -> None:
        """An agent writes a file, its manifest and its progress; it dies after `writes` of them.

        It reads at most so many blocks of each lane, and says so.
        """
        before = self.agents[number]
        rows: list[dict[str, Any]] = []
        lanes = [
            self._read(lane, before.lanes.get(lane.incarnation), rows, blocks_max)
            for lane in self.lanes
            if not before.lanes.get(lane.incarnation, Read(0, 0)).ended
        ]
        storage = self._measure(before.storage_until_ms, rows)
        coverage = ClusterEntry(
            cluster_id=CLUSTER,
            organization_id=ORGANIZATION,
            since_ms=before.as_of_ms,
            as_of_ms=self.now_ms,
            lanes=tuple(lanes),
            storage=storage,
        )
        known = dict(before.lanes)
        for lane in lanes:
            sequence = max(lane.last_sequence, lane.first_sequence - 1)
            known[lane.incarnation] = Read(sequence, lane.until_ms, lane.ended)
        after = Progress(self.now_ms, known, storage.until_ms)
        self._write(rows, coverage, f"agent-{number}", writes)
        if writes < 3:
            return self.restart_agent(number)
        self.agents[number] = self.saved = after
        return None

    def _read(
        self, lane: Lane, read: Read | None, rows: list[dict[str, Any]], blocks_max: int | None
    ) -> LaneEntry:
        read = read or Read(-1, lane.started_at_ms)
        news = [block for block in lane.blocks if block.sequence > read.sequence]
        taken = news[:blocks_max]
        rows += [self._row_of(lane, block) for block in taken]
        if len(taken) == len(news):
            until_ms = self.now_ms
        else:
            until_ms = taken[-1].written_at_ms if taken else read.until_ms
        return LaneEntry(
            incarnation=lane.incarnation,
            started_at_ms=lane.started_at_ms,
            ended=lane.ended and len(taken) == len(news),
            first_sequence=read.sequence + 1,
            last_sequence=taken[-1].sequence if taken else read.sequence,
            since_ms=read.until_ms,
            until_ms=max(until_ms, read.until_ms),
        )

    def _row_of(self, lane: Lane, block: Block) -> dict[str, Any]:
        minute_ms = floor_to(block.written_at_ms, MINUTE_MS)
        return {
            "incarnation": lane.incarnation,
            "lane_file": 1 + block.sequence // 8,
            "block": block.sequence,
            "topic_id": TOPIC,
            "partition": 0 if block.meter is Meter.INGRESS_BYTES else None,
            "principal": block.principal,
            "meter": str(block.meter),
            "window_start_ms": minute_ms,
            "window_end_ms": minute_ms + MINUTE_MS,
            "quantity": block.quantity,
            "cumulative": block.cumulative,
        }

    def _measure(self, until_ms: int | None, rows: list[dict[str, Any]]) -> StorageEntry:
        """Says again what slots after `until_ms` hold, and makes those that lack up to now."""
        reached = ceil_to(START_MS, MINUTE_MS) if until_ms is None else until_ms
        since = reached
        while reached < floor_to(self.now_ms, MINUTE_MS):
            slot = self.slots.get(reached)
            if slot is None:
                end = min(floor_to(self.now_ms, MINUTE_MS), floor_to(reached, HOUR_MS) + HOUR_MS)
                slot = self.slots[reached] = self._slot(reached, end)
            rows += [row_of_slot(slot, row) for row in slot.rows]
            reached = slot.window_end_ms
        return StorageEntry(since_ms=since, until_ms=reached)

    def _slot(self, start_ms: int, end_ms: int) -> Slot:
        quantity = sum(stored_at(minute) for minute in range(start_ms, end_ms, MINUTE_MS))
        row = SlotRow(
            meter=str(Meter.STORAGE_BYTE_MINUTES),
            topic_id=TOPIC,
            partition=0,
            quantity=quantity,
            billed=True,
        )
        return Slot(
            cell=CELL,
            cluster_id=CLUSTER,
            window_start_ms=start_ms,
            window_end_ms=end_ms,
            rows=(row,),
        )

    def _write(
        self, rows: list[dict[str, Any]], coverage: ClusterEntry, agent: str, writes: int
    ) -> None:
        common = {
            "schema_version": BLOCKS_VERSION,
            "cell": CELL,
            "cluster_id": CLUSTER,
            "organization_id": ORGANIZATION,
            "billed": True,
            "emitted_at_ms": self.now_ms,
        }
        whole = [{**common, **row} for row in rows]
        data = encode_usage(pa.Table.from_pylist(whole, schema=USAGE_SCHEMA))
        # Real agents draw a random token for files of one millisecond. Here it is their number.
        self.files += 1
        key = data_key(CELL, self.now_ms, f"{self.files:016x}")
        manifest = UsageManifest(
            cell=CELL,
            key=key,
            size_bytes=len(data),
            sha256=sha256_of(data),
            rows=len(rows),
            window_start_ms=min((row["window_start_ms"] for row in rows), default=0),
            window_end_ms=max((row["window_end_ms"] for row in rows), default=0),
            emitted_at_ms=self.now_ms,
            agent=agent,
            clusters=(coverage,),
        )
        if writes > 0:
            self.store.put_new(key, data)
        if writes > 1:
            self.store.put_new(manifest_key(key), encode_manifest(manifest))


def row_of_slot(slot: Slot, row: SlotRow) -> dict[str, Any]:
    """A slot's row as usage files have it."""
    return {
        "incarnation": None,
        "lane_file": None,
        "block": None,
        "topic_id": row.topic_id,
        "partition": row.partition,
        "principal": None,
        "meter": row.meter,
        "window_start_ms": slot.window_start_ms,
        "window_end_ms": slot.window_end_ms,
        "quantity": row.quantity,
        "cumulative": None,
    }


def stored_at(minute_ms: int) -> int:
    """The bytes that the cluster stores in a minute, which differ from minute to minute."""
    return 1000 + (minute_ms // MINUTE_MS) % 61


def duplicate_file(
    store: MemoryStore, manifest: UsageManifest, emitted_at_ms: int
) -> UsageManifest:
    """Puts a usage file into the store once more, under another key."""
    data = store.get(manifest.key)
    key = data_key(manifest.cell, emitted_at_ms, manifest.sha256)
    again = replace(manifest, key=key, emitted_at_ms=emitted_at_ms)
    store.put_new(key, data)
    store.put_new(manifest_key(key), encode_manifest(again))
    return again

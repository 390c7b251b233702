"""A fake agent: writes usage files with manifests, correct or faulty ones as a test asks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from metering.events.keys import data_key, manifest_key
from metering.events.manifests import (
    ClusterEntry,
    LaneEntry,
    StorageEntry,
    UsageManifest,
    encode_manifest,
)
from metering.events.records import USAGE_SCHEMA, encode_usage
from metering.events.store import FolderUsageStore
from metering.periods import MINUTE_MS, to_ms
from tests.metering.console.world import TOPIC_ID

PRINCIPAL = "User:cred_aaaaaaaaaaaaaaaaaaaa"


@dataclass(frozen=True)
class Block:
    """A block of a lane: one row of each of its quantities, by partition."""

    sequence: int
    written_at_ms: int
    quantities: tuple[int, ...] = (1,)
    meter: str = "ingress_bytes"
    topic_id: str = TOPIC_ID
    principal: str = PRINCIPAL
    billed: bool = True


@dataclass(frozen=True)
class Window:
    """A row of a meter of time."""

    start_ms: int
    end_ms: int
    quantity: int
    meter: str = "storage_byte_minutes"
    topic_id: str = TOPIC_ID
    partition: int | None = 0


@dataclass
class Agent:
    """Writes files of one cluster."""

    store: FolderUsageStore
    cell: str
    organization_id: str
    cluster_id: str
    name: str = "agent-1"
    incarnation: int = 1
    started_at_ms: int = 0
    topics: dict[str, str] = field(default_factory=lambda: {TOPIC_ID: "orders"})

    def rows(self, blocks: Iterable[Block], windows: Iterable[Window], at_ms: int) -> pa.Table:
        """Rows of usage files."""
        all_rows = [
            {
                **self._row(block.meter, block.topic_id, quantity, at_ms),
                "incarnation": self.incarnation,
                "lane_file": block.sequence // 10,
                "block": block.sequence,
                "partition": partition,
                "principal": block.principal,
                "window_start_ms": block.written_at_ms // MINUTE_MS * MINUTE_MS,
                "window_end_ms": block.written_at_ms // MINUTE_MS * MINUTE_MS + MINUTE_MS,
                "billed": block.billed,
            }
            for block in blocks
            for partition, quantity in enumerate(block.quantities)
        ]
        all_rows += [
            {
                **self._row(window.meter, window.topic_id, window.quantity, at_ms),
                "partition": window.partition,
                "window_start_ms": window.start_ms,
                "window_end_ms": window.end_ms,
                "billed": window.meter != "broker_seconds",
            }
            for window in windows
        ]
        empty = dict.fromkeys(USAGE_SCHEMA.names)
        return pa.Table.from_pylist([empty | row for row in all_rows], schema=USAGE_SCHEMA)

    def emit(
        self,
        at: datetime,
        entry: ClusterEntry,
        blocks: Sequence[Block] = (),
        windows: Sequence[Window] = (),
    ) -> UsageManifest:
        """Writes a file and its manifest."""
        at_ms = to_ms(at)
        table = self.rows(blocks, windows, at_ms)
        return self.put(at_ms, table, [entry])

    def put(self, at_ms: int, table: pa.Table, entries: Sequence[ClusterEntry]) -> UsageManifest:
        """Writes a file of these rows."""
        data = encode_usage(table)
        digest = hashlib.sha256(data + self.name.encode()).hexdigest()
        starts, ends = table["window_start_ms"].to_pylist(), table["window_end_ms"].to_pylist()
        manifest = UsageManifest(
            cell=self.cell,
            key=data_key(self.cell, at_ms, digest),
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            rows=table.num_rows,
            window_start_ms=min(starts, default=0),
            window_end_ms=max(ends, default=0),
            emitted_at_ms=at_ms,
            agent=self.name,
            clusters=tuple(entries),
            topics={f"{self.cluster_id}/{key}": name for key, name in self.topics.items()},
        )
        assert self.store.put_new(manifest.key, data)
        assert self.store.put_new(manifest_key(manifest.key), encode_manifest(manifest))
        return manifest

    def entry(
        self,
        since_ms: int | None,
        as_of_ms: int,
        *,
        sequences: tuple[int, int] | None = None,
        times: tuple[int, int] | None = None,
        storage: tuple[int, int] | None = None,
        ended: bool = False,
        closed: bool = False,
    ) -> ClusterEntry:
        """What a manifest says of the cluster: its one lane, and time."""
        lanes: tuple[LaneEntry, ...] = ()
        if sequences is not None:
            since, until = times or (since_ms or self.started_at_ms, as_of_ms)
            lane = LaneEntry(
                incarnation=self.incarnation,
                started_at_ms=self.started_at_ms,
                ended=ended,
                first_sequence=sequences[0],
                last_sequence=sequences[1],
                since_ms=since,
                until_ms=until,
            )
            lanes = (lane,)
        return ClusterEntry(
            cluster_id=self.cluster_id,
            organization_id=self.organization_id,
            since_ms=since_ms,
            as_of_ms=as_of_ms,
            lanes=lanes,
            storage=storage and StorageEntry(since_ms=storage[0], until_ms=storage[1]),
            closed=closed,
        )

    def twin(self, name: str) -> Agent:
        """Another agent of the same cluster."""
        return replace(self, name=name)

    def _row(self, meter: str, topic_id: str, quantity: int, at_ms: int) -> dict[str, object]:
        return {
            "schema_version": 1,
            "cell": self.cell,
            "cluster_id": self.cluster_id,
            "organization_id": self.organization_id,
            "topic_id": topic_id,
            "meter": meter,
            "quantity": quantity,
            "emitted_at_ms": at_ms,
        }


def overwrite(store: FolderUsageStore, key: str, data: bytes) -> None:
    """Damages an object, as no agent ever does."""
    (store.root / key).write_bytes(data)


def remove(store: FolderUsageStore, key: str) -> None:
    """Loses an object."""
    (store.root / key).unlink()

"""Reads a cluster's log from its storage, independently of the engine.

Written from the format descriptions in `lane/` and `cold/` of `brokers/core/crates/storage/src/`,
and sharing no code with them: what this finds is evidence. No broker may run meanwhile, or only one
that is idle. A wrong checksum, a gap or an overlap raises `DamageError`.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.brokers.batches import Batch, Record, check
from tests.brokers.lanes import (
    CHECKPOINT,
    DATA,
    INSTALL,
    Lane,
    ManifestName,
    PartitionId,
    batch_of,
    data_entries,
    install_entries,
    read_blocks,
    read_leftover,
    read_owner,
    read_seal,
)
from tests.brokers.manifests import Manifest, Segment, read_manifest, read_section


@dataclass(frozen=True)
class Topic:
    """A topic as the metadata store has it."""

    name: str
    id: uuid.UUID
    partitions: int


class LogScan:
    """The log of one cluster."""

    def __init__(
        self,
        dfs: Path,
        bucket: Path,
        metadata: Path | Mapping[str, Any] | None,
        cluster: str = "local",
    ) -> None:
        """`metadata`: an SQLite file, or the records of the cluster by their keys."""
        self.lanes_folder = dfs / cluster / "lanes"
        self.bucket = bucket / cluster
        self.records_of_store = (
            read_metadata(metadata, cluster) if isinstance(metadata, Path) else metadata or {}
        )
        self.topics = self._read_topics()
        self.lanes = {
            int(folder.name): self._read_lane(int(folder.name), folder)
            for folder in sorted(self.lanes_folder.iterdir())
            if folder.name.isdigit()
        }
        self.installed: dict[PartitionId, ManifestName] = {}
        for lane in self.lanes.values():
            for partition, name in lane.installs:
                self.installed[partition] = max(name, self.installed.get(partition, name))

    def _read_topics(self) -> dict[str, Topic]:
        topics = {}
        for key, record in self.records_of_store.items():
            if key.startswith("topic/"):
                topic = Topic(record["name"], uuid.UUID(record["id"]), record["partitions"])
                topics[topic.name] = topic
        return topics

    def _sealed_end(self, incarnation: int) -> tuple[int, int] | None:
        record = self.records_of_store.get(f"incarnation/{incarnation:020}")
        end = record and record["sealed_end"]
        return (end["file"], end["sequence"]) if end else None

    def _read_lane(self, incarnation: int, folder: Path) -> Lane:
        lane = Lane(incarnation, owner=read_owner(folder / "OWNER"))
        if (folder / "SEAL").exists():
            lane.seal = read_seal(folder / "SEAL", incarnation)
        end = self._sealed_end(incarnation)
        if lane.seal is not None and end is not None:
            stated = (lane.seal.end_file, lane.seal.end_sequence)
            check(stated == end, f"{folder}: SEAL ends at {stated}, the metadata says {end}")
        if lane.seal is not None:
            end = (lane.seal.end_file, lane.seal.end_sequence)
        read_blocks(lane, folder, end[1] if end else None)
        for block in lane.blocks:
            if block.kind == DATA:
                entries = data_entries(block.index, block.version)
                lane.batches += [batch_of(block, entry) for entry in entries]
            elif block.kind == INSTALL:
                lane.installs += install_entries(block.index)
            elif block.kind == CHECKPOINT:
                lane.installs += install_entries(block.index[8:])
        lane.leftovers = [read_leftover(path) for path in sorted(folder.glob("*.idx"))]
        return lane

    def extents(self, partition: PartitionId) -> list[tuple[int, int]]:
        """(epoch, incarnation) of the lanes in which unsplit records of a partition may lie."""
        key = f"partition/{partition.topic.hex}/{partition.index:06}"
        record = self.records_of_store[key]
        return [(extent["epoch"], extent["incarnation"]) for extent in record["extents"]]

    def manifest(self, partition: PartitionId) -> Manifest | None:
        """The manifest that counts; None before the first."""
        name = self.installed.get(partition)
        if name is None:
            return None
        folder = self.bucket / "manifests" / partition.topic.hex / str(partition.index)
        manifest = read_manifest(folder / name.file_name)
        check(
            (manifest.partition, manifest.name) == (partition, name),
            f"{folder}/{name.file_name}: other",
        )
        return manifest

    def batches(self, topic: str, index: int) -> Iterator[Batch]:
        """Every batch of a partition, by offset. Raises `DamageError` at a gap or an overlap."""
        partition = PartitionId(self.topics[topic].id, index)
        manifest = self.manifest(partition)
        due = 0
        if manifest is not None:
            # Records of the first segment may be deleted; without a segment all split records are.
            first = [*manifest.segments, None][0]
            due = manifest.covered_end if first is None else first.base_offset
            check(due <= manifest.log_start, f"{topic}-{index}: nothing before {due}")
            for segment in manifest.segments:
                for batch in self._batches_of(partition, segment):
                    # Compaction leaves holes.
                    missing = batch.base_offset - due
                    follows = missing == 0 or (missing > 0 and segment.compacted)
                    check(follows, f"{topic}-{index}: {due} was due in a segment")
                    due = batch.next_offset
                    if due > manifest.log_start:
                        yield batch
            check(due == manifest.covered_end, f"{topic}-{index}: segments end at {due}")
        for epoch, incarnation in self.extents(partition):
            lane = self.lanes[incarnation]
            # Every lane begins with a checkpoint; the index of a split file has it, too.
            held = bool(lane.blocks or lane.leftovers)
            check(held, f"{topic}-{index}: lane {incarnation} holds nothing")
            for placed in lane.batches:
                entry = placed.entry
                if (entry.partition, entry.epoch) != (partition, epoch):
                    continue
                if manifest is not None and entry.base_offset < manifest.covered_end:
                    continue
                check(entry.base_offset == due, f"{topic}-{index}: {due} was due in a lane")
                due = placed.batch.next_offset
                if manifest is None or due > manifest.log_start:
                    yield placed.batch

    def segment_batches(self, manifest: Manifest) -> Iterator[Batch]:
        """Every batch of a manifest's segments."""
        for segment in manifest.segments:
            yield from self._batches_of(manifest.partition, segment)

    def _batches_of(self, partition: PartitionId, segment: Segment) -> Iterator[Batch]:
        path = self.bucket / "objects" / f"{segment.incarnation:020}" / f"{segment.number:012}"
        yield from read_section(path, partition, segment)

    def records(self, topic: str) -> Iterator[tuple[int, Record]]:
        """Every user's record of a topic with its partition, by partition and offset."""
        for index in range(self.topics[topic].partitions):
            for batch in self.batches(topic, index):
                if not batch.attributes & 0x20:
                    for record in batch.records():
                        yield index, record


def read_metadata(path: Path, cluster: str) -> dict[str, Any]:
    """Every record of a cluster in the SQLite metadata store, by its key within the cluster."""
    check(path.exists(), f"{path} does not exist")
    with closing(sqlite3.connect(path)) as store:
        (application,) = store.execute("PRAGMA application_id").fetchone()
        check(application == 0x46525348, f"{path}: not a metadata store")
        (version,) = store.execute("SELECT version FROM meta").fetchone()
        check(version == 1, f"{path}: tables of version {version}")
        prefix = f"{cluster}/"
        rows = store.execute(
            "SELECT key, value FROM entry WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)
        )
        records = {key[len(prefix) :]: json.loads(value) for key, value in rows}
    for key, record in records.items():
        check(record["v"] == 1, f"{path}: {key} has version {record['v']}")
    return records

"""Reads a cluster's log from its storage, independently of the engine.

Written from the format descriptions in `brokers/core/src/lane/` and `brokers/core/src/cold/`, and
sharing no code with them: what this finds is evidence. No broker may run meanwhile, or only one
that is idle. Anything that does not check raises `DamageError`.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka.record.util import calc_crc32c

from tests.brokers.batches import Batch, DamageError, Record, read_batch, read_batches

ALIGNMENT = 4096

# magic, version, kind, zero, incarnation, sequence, durable sequence, index, payload, checksum
BLOCK = struct.Struct("<4sHBBQQQIII")
BLOCK_BYTES = 64
BLOCK_CRC_AT = 40
DATA, USAGE, INSTALL, CHECKPOINT, CLOSE = range(1, 6)
KINDS = {DATA: "data", USAGE: "usage", INSTALL: "install", CHECKPOINT: "checkpoint", CLOSE: "close"}

# topic, partition, epoch, principal, attributes, base offset, records, position, length; then the
# batch's largest timestamp, producer's id, first sequence number, producer's epoch. The first
# version of the format ends before the largest timestamp.
DATA_ENTRIES = {1: struct.Struct("<16siiHhqIII"), 2: struct.Struct("<16siiHhqIIIqqih2x")}
USAGE_ENTRY = struct.Struct("<16sHQQ")
INSTALL_ENTRY = struct.Struct("<16siiQ")
OWNER = struct.Struct("<4sHHQ16sI")
# magic, version, zero, incarnation, end file, end sequence, count, checksum
SEAL = struct.Struct("<4sHHQQQII")
SEAL_CRC_AT = 36
SEAL_ROW = struct.Struct("<QQQQQ")
# magic, version, zero, incarnation, file, first sequence, last sequence, count, checksum
LEFTOVER = struct.Struct("<4sHHQQQQII")
LEFTOVER_CRC_AT = 44

OBJECT_HEADER = struct.Struct("<4sH10x")
SECTION = struct.Struct("<16siI")
CHUNK = struct.Struct("<QQqqqII")
MANIFEST_HEADER = struct.Struct("<4sHHI")
MANIFEST = struct.Struct("<16siiQqqq")
FIRST_DIRTY = struct.Struct("<q")
SEGMENT = struct.Struct("<QQQIIqqqQqq")
SEGMENT_V1 = struct.Struct("<QQQIIqqqQq")
COMPACTED = 1
DROPPED = struct.Struct("<Qqqq")
DAY = struct.Struct("<qQ")
REPLACED = struct.Struct("<Qqq")
EPOCH = struct.Struct("<iq")
ABORTED = struct.Struct("<qqq")
PRODUCER = struct.Struct("<qhiqqB")
PRODUCED = struct.Struct("<iiqq")


@dataclass(frozen=True)
class PartitionId:
    """A partition by its topic's id."""

    topic: uuid.UUID
    index: int


@dataclass(frozen=True, order=True)
class ManifestName:
    """Later manifests of a partition compare greater."""

    epoch: int
    number: int

    @property
    def file_name(self) -> str:
        """The last part of its key."""
        return f"{self.epoch:010}-{self.number:012}"


@dataclass(frozen=True)
class DataEntry:
    """A batch as a block's index has it."""

    partition: PartitionId
    epoch: int
    principal: str
    base_offset: int
    count: int
    position: int
    length: int
    # Attributes, largest timestamp, producer's id, first sequence number, producer's epoch; of
    # the second version on.
    facts: tuple[int, ...] | None


@dataclass(frozen=True)
class Block:
    """A block whose checksum holds."""

    version: int
    kind: int
    incarnation: int
    sequence: int
    durable_sequence: int
    index: bytes
    payload: bytes
    span: int
    where: str


@dataclass(frozen=True)
class Placed:
    """A batch in a lane."""

    entry: DataEntry
    batch: Batch


@dataclass
class Seal:
    """What a sealer left."""

    end_file: int
    end_sequence: int
    blocks: dict[tuple[int, int], Block]


@dataclass
class Lane:
    """A lane, up to its end."""

    incarnation: int
    owner: int | None = None
    seal: Seal | None = None
    blocks: list[Block] = field(default_factory=list)
    batches: list[Placed] = field(default_factory=list)
    installs: list[tuple[PartitionId, ManifestName]] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)


@dataclass(frozen=True)
class Leftover:
    """What is left of a file that was split."""

    file: int
    first_sequence: int
    last_sequence: int
    entries: tuple[DataEntry, ...]
    usage: tuple[tuple[uuid.UUID, str, int], ...]


@dataclass(frozen=True)
class Segment:
    """A partition's run of records in an object."""

    incarnation: int
    number: int
    section_position: int
    section_bytes: int
    base_offset: int
    end_offset: int
    max_timestamp: int
    bytes: int
    compacted: bool


@dataclass(frozen=True)
class Manifest:
    """A partition's manifest."""

    partition: PartitionId
    name: ManifestName
    log_start: int
    covered_end: int
    segments: tuple[Segment, ...]
    epochs: tuple[tuple[int, int], ...]
    producers: dict[int, tuple[int, list[tuple[int, int, int, int]]]]


@dataclass(frozen=True)
class Topic:
    """A topic as the metadata store has it."""

    name: str
    id: uuid.UUID
    partitions: int


def table_of_principals(index: bytes) -> tuple[list[str], int]:
    """The table that data and usage indexes begin with, and where it ends."""
    (count,) = struct.unpack_from("<H", index)
    position, names = 2, []
    for _ in range(count):
        (length,) = struct.unpack_from("<H", index, position)
        position += 2
        names.append(index[position : position + length].decode())
        position += length
    return names, position


def data_entries(index: bytes, version: int) -> list[DataEntry]:
    """The index of a data block."""
    form = DATA_ENTRIES[version]
    principals, position = table_of_principals(index)
    (count,) = struct.unpack_from("<I", index, position)
    rows = form.iter_unpack(index[position + 4 : position + 4 + count * form.size])
    entries = [
        DataEntry(
            PartitionId(uuid.UUID(bytes=topic), partition),
            epoch,
            principals[principal],
            base_offset,
            records,
            start,
            length,
            (attributes, *facts) if facts else None,
        )
        for (
            topic,
            partition,
            epoch,
            principal,
            attributes,
            base_offset,
            records,
            start,
            length,
            *facts,
        ) in rows
    ]
    check(len(entries) == count, "data index is cut off")
    return entries


def usage_entries(index: bytes) -> list[tuple[uuid.UUID, str, int]]:
    """The index of a usage block: topic, principal, bytes read since the broker started."""
    principals, position = table_of_principals(index)
    (count,) = struct.unpack_from("<I", index, position + 16)
    rows = USAGE_ENTRY.iter_unpack(index[position + 20 : position + 20 + count * USAGE_ENTRY.size])
    return [(uuid.UUID(bytes=topic), principals[who], total) for topic, who, total, _ in rows]


def install_entries(index: bytes) -> list[tuple[PartitionId, ManifestName]]:
    """The index of an install block, or a checkpoint's behind its file number."""
    (count,) = struct.unpack_from("<I", index)
    rows = INSTALL_ENTRY.iter_unpack(index[4 : 4 + count * INSTALL_ENTRY.size])
    return [
        (PartitionId(uuid.UUID(bytes=topic), partition), ManifestName(epoch, number))
        for topic, partition, epoch, number in rows
    ]


def check(holds: bool, message: str) -> None:
    """Raises `DamageError` unless it holds."""
    if not holds:
        raise DamageError(message)


def block_at(raw: bytes, position: int, where: str) -> Block | None:
    """The whole block at a position, if there is one."""
    if len(raw) - position < BLOCK_BYTES or raw[position : position + 4] != b"FRLB":
        return None
    header = BLOCK.unpack_from(raw, position)
    _, version, kind, _, incarnation, sequence, durable, index_bytes, payload_bytes, crc = header
    check(version in DATA_ENTRIES, f"{where}: block format version {version}")
    end = position + BLOCK_BYTES + index_bytes + payload_bytes
    if kind not in KINDS or end > len(raw):
        return None
    summed = bytearray(raw[position:end])
    summed[BLOCK_CRC_AT : BLOCK_CRC_AT + 4] = bytes(4)
    if calc_crc32c(bytes(summed)) != crc:
        return None
    payload_at = position + BLOCK_BYTES + index_bytes
    return Block(
        version,
        kind,
        incarnation,
        sequence,
        durable,
        raw[position + BLOCK_BYTES : payload_at],
        raw[payload_at:end],
        -(-(end - position) // ALIGNMENT) * ALIGNMENT,
        f"{where}@{position}",
    )


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
            # Of the first segment some may be deleted; without one all that was split is.
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
            # Every lane begins with a checkpoint; what is left of one that was split says so too.
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
        raw = path.read_bytes()
        check(OBJECT_HEADER.unpack_from(raw) == (b"FRSG", 1), f"{path}: not an object")
        section_end = segment.section_position + segment.section_bytes
        section = raw[segment.section_position : section_end]
        topic, index, count = SECTION.unpack_from(section)
        owner = PartitionId(uuid.UUID(bytes=topic), index)
        check(owner == partition, f"{path}: a section of {owner}")
        (checksum,) = struct.unpack_from("<I", section, len(section) - 4)
        check(calc_crc32c(section[:-4]) == checksum, f"{path}: wrong checksum of a section")
        rows = list(CHUNK.iter_unpack(section[SECTION.size : -4]))
        check(len(rows) == count, f"{path}: {len(rows)} chunks of {count}")
        for position, length, _, _, _, crc, _ in rows:
            chunk = raw[position : position + length]
            check(calc_crc32c(chunk) == crc, f"{path}: wrong checksum of the chunk at {position}")
            yield from read_batches(chunk, f"{path}@{position}")

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


def read_owner(path: Path) -> int | None:
    """Who holds the owner token; None where there is no readable token."""
    if not path.exists():
        return None
    raw = path.read_bytes()
    if len(raw) < OWNER.size:
        return None
    magic, version, _, holder, _, checksum = OWNER.unpack_from(raw)
    sound = magic == b"FRLO" and version == 1
    return holder if sound and calc_crc32c(raw[: OWNER.size - 4]) == checksum else None


def read_seal(path: Path, incarnation: int) -> Seal:
    """Reads a SEAL file."""
    raw = path.read_bytes()
    magic, version, _, owner, file, sequence, count, checksum = SEAL.unpack_from(raw)
    check((magic, version, owner) == (b"FRLS", 1, incarnation), f"{path}: not of this lane")
    summed = bytearray(raw[: SEAL.size + count * SEAL_ROW.size])
    summed[SEAL_CRC_AT : SEAL_CRC_AT + 4] = bytes(4)
    check(calc_crc32c(bytes(summed)) == checksum, f"{path}: wrong checksum")
    blocks = {}
    for row in SEAL_ROW.iter_unpack(raw[SEAL.size : len(summed)]):
        of_file, position, of_sequence, seal_position, length = row
        block = block_at(raw[: seal_position + length], seal_position, str(path))
        check(block is not None and block.sequence == of_sequence, f"{path}: block {of_sequence}")
        assert block is not None
        blocks[(of_file, position)] = block
    return Seal(file, sequence, blocks)


def read_blocks(lane: Lane, folder: Path, end_sequence: int | None) -> None:
    """Reads a lane's blocks in order, up to its end where it has one."""
    due: int | None = None
    for path in sorted(folder.glob("*.wal")):
        raw = path.read_bytes()
        position = 0
        while end_sequence is None or due is None or due <= end_sequence:
            sealed = lane.seal and lane.seal.blocks.get((int(path.stem), position))
            block = sealed or block_at(raw, position, str(path))
            if block is None or block.incarnation != lane.incarnation:
                break
            if due is not None and block.sequence != due:
                break
            if end_sequence is not None and block.sequence > end_sequence:
                break
            lane.blocks.append(block)
            due = block.sequence + 1
            position += block.span
        if end_sequence is None:
            refuse_gap(lane, raw, position, due or 1, path)
    if end_sequence is not None and due is not None:
        check(due > end_sequence, f"{folder}: block {due} is missing before {end_sequence}")


def refuse_gap(lane: Lane, raw: bytes, position: int, due: int, path: Path) -> None:
    """A hole before something that was durable is damage, not an end."""
    for at in range(position, len(raw), ALIGNMENT):
        block = block_at(raw, at, str(path))
        if block is not None and block.incarnation == lane.incarnation:
            check(block.durable_sequence < due, f"{path}: block {due} is missing")


def batch_of(block: Block, entry: DataEntry) -> Placed:
    """The batch that an entry of a data block's index speaks of."""
    raw = block.payload[entry.position : entry.position + entry.length]
    batch = read_batch(raw, f"{block.where}+{entry.position}")
    stated = (entry.base_offset, entry.epoch, entry.base_offset + entry.count, entry.length)
    found = (batch.base_offset, batch.leader_epoch, batch.next_offset, batch.size)
    check(stated == found, f"{block.where}: the index says {stated}, the batch {found}")
    producer = (batch.producer_id, batch.base_sequence, batch.producer_epoch)
    facts = (batch.attributes, batch.max_timestamp, *producer)
    known = entry.facts in {None, facts}
    check(known, f"{block.where}: the index says {entry.facts}, the batch {facts}")
    return Placed(entry, batch)


def read_leftover(path: Path) -> Leftover:
    """Reads what is left of a lane file."""
    raw = path.read_bytes()
    header = LEFTOVER.unpack_from(raw)
    magic, form, _, _, file, first, last, count, checksum = header
    check((magic, form, file) == (b"FRLI", 1, int(path.stem)), f"{path}: not an index")
    summed = bytearray(raw)
    summed[LEFTOVER_CRC_AT : LEFTOVER_CRC_AT + 4] = bytes(4)
    check(calc_crc32c(bytes(summed)) == checksum, f"{path}: wrong checksum")
    position = LEFTOVER.size
    entries: list[DataEntry] = []
    usage: list[tuple[uuid.UUID, str, int]] = []
    for _ in range(count):
        block = BLOCK.unpack_from(raw, position)
        version, kind, index_bytes = block[1], block[2], block[7]
        start = position + BLOCK_BYTES
        index = raw[start : start + index_bytes]
        if kind == DATA:
            entries += data_entries(index, version)
        else:
            usage += usage_entries(index)
        position = start + index_bytes
    check(position == len(raw), f"{path}: {len(raw) - position} bytes too many")
    return Leftover(file, first, last, tuple(entries), tuple(usage))


class Counted:
    """Reads arrays that stand behind a count."""

    def __init__(self, raw: bytes, position: int) -> None:
        self.raw, self.position = raw, position

    def rows(self, form: struct.Struct) -> Iterator[tuple[Any, ...]]:
        """The next array."""
        (count,) = struct.unpack_from("<I", self.raw, self.position)
        self.position += 4
        for _ in range(count):
            row = form.unpack_from(self.raw, self.position)
            self.position += form.size
            yield row


def read_manifest(path: Path) -> Manifest:
    """Reads a manifest."""
    raw = path.read_bytes()
    magic, version, _, checksum = MANIFEST_HEADER.unpack_from(raw)
    check(magic == b"FRMF" and version in (1, 2), f"{path}: not a manifest")
    check(calc_crc32c(raw[MANIFEST_HEADER.size :]) == checksum, f"{path}: wrong checksum")
    head = MANIFEST.unpack_from(raw, MANIFEST_HEADER.size)
    topic, index, epoch, number, log_start, covered_end, _ = head
    after = FIRST_DIRTY.size if version > 1 else 0
    arrays = Counted(raw, MANIFEST_HEADER.size + MANIFEST.size + after)
    segments = tuple(
        Segment(who, which, at, length, base, end, newest, size, bool(flags & COMPACTED))
        for who, which, at, length, flags, base, end, newest, size, *_ in arrays.rows(
            SEGMENT if version > 1 else SEGMENT_V1
        )
    )
    for beside in (DROPPED, DAY, REPLACED) if version > 1 else (DROPPED,):
        list(arrays.rows(beside))
    epochs = tuple((of, start) for of, start in arrays.rows(EPOCH))
    list(arrays.rows(ABORTED))
    producers = {}
    for producer, producer_epoch, _, _, _, count in arrays.rows(PRODUCER):
        last = []
        for _ in range(count):
            last.append(PRODUCED.unpack_from(raw, arrays.position))
            arrays.position += PRODUCED.size
        producers[producer] = (producer_epoch, last)
    check(arrays.position == len(raw), f"{path}: {len(raw) - arrays.position} bytes too many")
    return Manifest(
        PartitionId(uuid.UUID(bytes=topic), index),
        ManifestName(epoch, number),
        log_start,
        covered_end,
        segments,
        epochs,
        producers,
    )

"""Reads lanes from storage: blocks, SEAL files and the indexes of split files. See `logscan`.

The format: `brokers/core/crates/storage/src/lane/README.md`.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from aiokafka.record.util import calc_crc32c

from tests.brokers.batches import Batch, check, read_batch

# States of an incarnation that others ended; one that ends by itself is `closed`.
FENCED = {"fenced", "sealed"}
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
    """A SEAL file."""

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
    """The index that is left of a file that was split."""

    file: int
    first_sequence: int
    last_sequence: int
    entries: tuple[DataEntry, ...]
    usage: tuple[tuple[uuid.UUID, str, int], ...]


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


def read_owner(path: Path) -> int | None:
    """The incarnation that the owner token names; None where there is no readable token."""
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
    """The batch of an entry of a data block's index."""
    raw = block.payload[entry.position : entry.position + entry.length]
    batch = read_batch(raw, f"{block.where}+{entry.position}")
    stated = (entry.base_offset, entry.epoch, entry.base_offset + entry.count, entry.length)
    actual = (batch.base_offset, batch.leader_epoch, batch.next_offset, batch.size)
    check(stated == actual, f"{block.where}: the index says {stated}, the batch {actual}")
    producer = (batch.producer_id, batch.base_sequence, batch.producer_epoch)
    facts = (batch.attributes, batch.max_timestamp, *producer)
    known = entry.facts in {None, facts}
    check(known, f"{block.where}: the index says {entry.facts}, the batch {facts}")
    return Placed(entry, batch)


def read_leftover(path: Path) -> Leftover:
    """Reads the index that is left of a lane file."""
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

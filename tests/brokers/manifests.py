"""Reads manifests and the segments that they name from storage. See `logscan`.

The format: `brokers/core/crates/storage/src/cold/README.md`.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.record.util import calc_crc32c

from tests.brokers.batches import Batch, check, read_batches
from tests.brokers.lanes import ManifestName, PartitionId

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
DAMAGED = struct.Struct("<qq")


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
    if arrays.position < len(raw):  # Releases that did not read records end before this table.
        list(arrays.rows(DAMAGED))
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


def read_section(path: Path, partition: PartitionId, segment: Segment) -> Iterator[Batch]:
    """Every batch of a segment, out of its object."""
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

"""What clusters used, read from their storage without a broker and without their metadata.

`UsageReader` reads lanes (who wrote and was handed how much) and manifests (what is stored). It
writes nothing but marks, and `drop_indexes` removes indexes that are recorded elsewhere. All calls
may be made from any thread and hold no lock of the interpreter. They raise
`brokers.errors.StorageError`, which names the file, where something is damaged or cannot be read:
nothing is left out without an error. The extension returns the same fields in the same order:
`tests/brokers/test_usage_types.py` compares its description with the types of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brokers import _core
from brokers.metadata_records import SealedEnd

__all__ = [
    "EGRESS",
    "INGRESS",
    "DroppedSegment",
    "LaneFiles",
    "LaneReading",
    "PartitionSegments",
    "ReplacedBytes",
    "SealedEnd",
    "StoredSegment",
    "UsageReader",
]

INGRESS = 0
"""In the column `meter`: bytes of record batches that were written."""
EGRESS = 1
"""In the column `meter`: bytes of record batches that were handed to sockets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneFiles:
    """The files of one lane, by their numbers, ascending."""

    incarnation: int
    indexes: tuple[int, ...]
    """Files that have an index: they were split, and their records are removed or about to be."""
    wals: tuple[int, ...]
    """Files that hold records; the last may be made ahead of use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneReading:
    """Rows of usage out of one lane, in the order of its blocks.

    A row is what a principal wrote to a partition, or was handed of a topic, within one block:
    (file, sequence, topic, partition, principal, meter) names it for ever. Columns are buffers of
    `rows` little-endian values each.
    """

    rows: int
    file: bytes
    """u64: number of the lane's file."""
    sequence: bytes
    """u64: the block's sequence number."""
    written_at_ms: bytes
    """i64: when the block was written, by its broker's clock; never goes back within a lane."""
    topic: bytes
    """u32: place in `topics`."""
    partition: bytes
    """i32: -1 for egress."""
    principal: bytes
    """u32: place in `principals`."""
    meter: bytes
    """u8: `INGRESS` or `EGRESS`."""
    quantity: bytes
    """u64: bytes."""
    cumulative: bytes
    """u64: of egress, bytes since the incarnation started; 0 of ingress."""
    topics: tuple[str, ...]
    """Topic ids, 32 hexadecimal digits each."""
    principals: tuple[str, ...]
    last_sequence: int
    """Every covered block up to here was read; `after_sequence` of the next call."""
    last_file: int
    """The file that the next call needs first; `after_file` of the next call."""
    covered_until_ms: int
    """All usage of the lane up to this time was read by now. For a live lane it is the time of
    reading (a write that was under way then may still bear an earlier time), or just before the
    first block that is not covered or not read yet (`more`)."""
    ended: bool
    """Nothing will follow: the lane was closed or sealed, or the call had `final`."""
    more: bool
    """Whether another call returns more at once."""
    unsplit_since_ms: int | None
    """When the first block with records was written that no index holds yet: what was written from
    then on is in no manifest. None where there is no such block."""
    gap: tuple[int, int] | None
    """First and last sequence number behind `after_sequence` that no file of the lane holds any
    more, because indexes were dropped before the caller had read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A run of records of a partition in the object store."""

    bytes: int
    """Bytes of its record batches."""
    written_at_ms: int
    """When the last block whose records it holds was written into a lane."""
    max_timestamp_ms: int
    """Largest timestamp of its records; -1 where they have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedSegment:
    """A segment that retention dropped; manifests remember it for 96 hours."""

    bytes: int
    written_at_ms: int
    max_timestamp_ms: int
    dropped_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedBytes:
    """Bytes that were stored beside the present segments until these were joined or compacted.

    From and until whole minutes; manifests remember it for two hours.
    """

    bytes: int
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSegments:
    """What a partition stores, by its newest manifest."""

    topic_id: str
    """32 hexadecimal digits."""
    partition: int
    name: str
    """The manifest's name. Another name means another content."""
    log_start: int
    covered_end: int
    """Offset behind the last record that was split."""
    segments: tuple[StoredSegment, ...]
    dropped: tuple[DroppedSegment, ...]
    split_by_day: tuple[tuple[int, int], ...] = ()
    """(First millisecond of a UTC day, bytes of all splits whose last block was written on that
    day, whether or not they are stored still), for at least 96 hours after the day."""
    replaced: tuple[ReplacedBytes, ...] = ()


class UsageReader:
    """Reads the usage of all clusters of a cell. `bucket`: a location (`brokers.locations`)."""

    def __init__(self, *, dfs: Path, bucket: str | Path) -> None:
        self._core = _core.UsageReader(str(dfs), str(bucket))

    def lanes(self, cluster_id: str) -> list[LaneFiles]:
        """The lanes of a cluster, by incarnation; empty where it never ran."""
        return [
            LaneFiles(incarnation=incarnation, indexes=tuple(indexes), wals=tuple(wals))
            for incarnation, indexes, wals in self._core.lanes(cluster_id)
        ]

    def read_lane(
        self,
        cluster_id: str,
        incarnation: int,
        *,
        after_sequence: int = 0,
        after_file: int = 0,
        final: bool = False,
        sealed_end: SealedEnd | None = None,
    ) -> LaneReading:
        """Every covered block behind `after_sequence`, up to some 24 MiB of columns.

        A block is covered where a later block, a close or the lane's SEAL says that it was durable;
        nothing beyond `sealed_end` or SEAL is. Files before `after_file` are not read. `final` says
        that nobody runs the cluster any more, so that the lane ends where its covered blocks end.
        """
        end = None if sealed_end is None else (sealed_end.file, sealed_end.sequence)
        reading = self._core.read_lane(
            cluster_id,
            incarnation,
            after_sequence=after_sequence,
            after_file=after_file,
            final=final,
            sealed_end=end,
        )
        return LaneReading(**reading)

    def drop_indexes(self, cluster_id: str, incarnation: int, *, below_file: int) -> int:
        """Removes indexes of files below a number; returns how many.

        The lane's last index stays, because it says that files before it were split. So does one
        whose file still exists.
        """
        return self._core.drop_indexes(cluster_id, incarnation, below_file)

    def mark_metered(self, cluster_id: str, incarnation: int) -> bool:
        """Marks a lane that has ended as recorded, after which a broker may remove it.

        Returns whether the lane has the mark now: it does not while a file with records is left.
        """
        return self._core.mark_metered(cluster_id, incarnation)

    def manifests(
        self, cluster_id: str, known: Mapping[tuple[str, int], str]
    ) -> list[PartitionSegments]:
        """What each partition stores whose newest manifest is not the one in `known`.

        `known` has names of manifests by topic id and partition. The result is sorted by these.
        """
        partitions = self._core.manifests(cluster_id, dict(known))
        return [
            PartitionSegments(
                topic_id=topic_id,
                partition=partition,
                name=name,
                log_start=log_start,
                covered_end=covered_end,
                segments=tuple(
                    StoredSegment(bytes=size, written_at_ms=written, max_timestamp_ms=timestamp)
                    for size, written, timestamp in segments
                ),
                dropped=tuple(
                    DroppedSegment(
                        bytes=size,
                        written_at_ms=written,
                        max_timestamp_ms=timestamp,
                        dropped_at_ms=at,
                    )
                    for size, written, timestamp, at in past[0]
                ),
                split_by_day=tuple(past[1]),
                replaced=tuple(
                    ReplacedBytes(bytes=size, since_ms=since, until_ms=until)
                    for size, since, until in past[2]
                ),
            )
            for topic_id, partition, name, log_start, covered_end, segments, past in partitions
        ]

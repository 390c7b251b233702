"""What clusters used, read off their storage without a broker and without their metadata.

`UsageReader` reads lanes (who wrote and was handed how much) and manifests (what is kept). It
writes nothing, but that `drop_indexes` removes what was recorded elsewhere. All calls may be made
from any thread and hold no lock of the interpreter. They raise `brokers.errors.StorageError`, which
names the file, where something is damaged or cannot be read: nothing is passed over in silence.
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
    """Files of which only the index is left, or will be in a moment."""
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
    """All usage of the lane up to then is in what was read up to now. Of a lane that lives it is
    the time of reading, so a write that was under way then may still bear an earlier time; or it is
    before the first block that is there and not sure yet, or not read yet (`more`)."""
    ended: bool
    """Nothing will follow: the lane was closed or sealed, or `final` was asked for."""
    more: bool
    """Another call gives more at once."""
    unsplit_since_ms: int | None
    """When the first block with records was written that no index holds yet: what was written from
    then on stands in no manifest. None where there is none."""
    gap: tuple[int, int] | None
    """First and last sequence number behind `after_sequence` that no file of the lane holds any
    more, because indexes were dropped before the caller had read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A run of records of a partition in the object store."""

    bytes: int
    """Of its record batches."""
    written_at_ms: int
    """When the last block whose records it holds was written into a lane."""
    max_timestamp_ms: int
    """Largest timestamp of its records; -1 where they have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedSegment:
    """A segment that retention let go, for 96 hours."""

    bytes: int
    written_at_ms: int
    max_timestamp_ms: int
    dropped_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedBytes:
    """Bytes that were kept beside what is kept now, until segments were joined or compacted.

    In whole minutes; remembered for two hours.
    """

    bytes: int
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSegments:
    """What a partition keeps, by its newest manifest."""

    topic_id: str
    """32 hexadecimal digits."""
    partition: int
    name: str
    """The manifest's; another name means another content."""
    log_start: int
    covered_end: int
    """Offset behind the last record that was split."""
    segments: tuple[StoredSegment, ...]
    dropped: tuple[DroppedSegment, ...]
    split_by_day: tuple[tuple[int, int], ...] = ()
    """First millisecond of a UTC day, and bytes: those of every split whose last block was written
    on that day, whatever became of them since. For the 96 hours after a day at least."""
    replaced: tuple[ReplacedBytes, ...] = ()


class UsageReader:
    """Reads the usage of all clusters of a cell. `bucket`: a location (`brokers.locations`)."""

    def __init__(self, *, dfs: Path, bucket: str | Path) -> None:
        self._core = _core.UsageReader(str(dfs), str(bucket))

    def lanes(self, cluster_id: str) -> list[LaneFiles]:
        """The lanes of a cluster, by incarnation; none where it never ran."""
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

        Covered is what a later block, a close or the lane's seal says was durable; never what lies
        beyond `sealed_end` or SEAL. `after_file` spares looking at earlier files. `final` says that
        nobody runs the cluster nor ever will: the lane ends where what is covered ends.
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
        """Removes indexes of files below a number; gives how many.

        The lane's last index stays: it says that files before it were split. So does one beside
        which its file still lies.
        """
        return self._core.drop_indexes(cluster_id, incarnation, below_file)

    def mark_metered(self, cluster_id: str, incarnation: int) -> bool:
        """Says in a lane that ended that all of it is recorded: a broker may remove it then.

        Gives whether the lane says so now; it does not while a file with records is left.
        """
        return self._core.mark_metered(cluster_id, incarnation)

    def manifests(
        self, cluster_id: str, known: Mapping[tuple[str, int], str]
    ) -> list[PartitionSegments]:
        """The newest manifest of each partition that has another name than `known` says.

        `known` is by topic id and partition. Sorted by topic id and partition.
        """
        found = self._core.manifests(cluster_id, dict(known))
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
            for topic_id, partition, name, log_start, covered_end, segments, past in found
        ]

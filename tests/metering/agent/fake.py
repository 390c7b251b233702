"""A cell in memory: clusters with lanes of blocks, indexes, segments and topics, as the engine
leaves them on storage, and the true usage. Nothing in it reads a clock: tests set `now_ms`.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from brokers.errors import BrokerError
from brokers.metadata import ClusterSpec, ClusterStatus, LaneRecord, SealedEnd, TopicHistory
from brokers.metadata_records import BrokerStatus
from brokers.usage import (
    EGRESS,
    INGRESS,
    DroppedSegment,
    LaneFiles,
    LaneReading,
    PartitionSegments,
    StoredSegment,
)
from metering.events.times import DAY_MS, floor_to

BROKER = BrokerStatus(slot=0, link="l", kafka="k", metrics="m")


class DamagedError(BrokerError):
    """A lane that cannot be read."""


@dataclass(frozen=True)
class Entry:
    """What one principal wrote to a partition, or was handed of a topic, within a block."""

    topic: str
    partition: int
    principal: str
    meter: int
    quantity: int
    cumulative: int = 0


@dataclass(frozen=True)
class Block:
    """A block of a lane. Without entries it is a checkpoint, an install or the like."""

    sequence: int
    file: int
    written_at_ms: int
    entries: tuple[Entry, ...] = ()

    @property
    def data(self) -> bool:
        """Whether it holds records."""
        return any(entry.meter == INGRESS for entry in self.entries)


@dataclass
class Lane:
    """The lane of an incarnation. `durable` is the highest block that a later one covers."""

    incarnation: int
    started_at_ms: int
    blocks: list[Block] = field(default_factory=list)
    durable: int = 0
    file: int = 0
    state: str = "live"
    sealed_end: SealedEnd | None = None
    split: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    egress: dict[tuple[str, str], int] = field(default_factory=dict)
    damaged: bool = False

    @property
    def last(self) -> int:
        """The last block's sequence."""
        return self.blocks[-1].sequence if self.blocks else 0

    def append(self, now_ms: int, entries: Sequence[Entry] = ()) -> None:
        """Appends a block, which covers all blocks before it."""
        self.durable = self.last
        written = max([now_ms, *(block.written_at_ms for block in self.blocks[-1:])])
        self.blocks.append(Block(self.last + 1, self.file, written, tuple(entries)))

    def end(self, sequence: int, state: str) -> None:
        """Ends the lane for ever at a block."""
        self.blocks = [block for block in self.blocks if block.sequence <= sequence]
        self.durable, self.state = sequence, state
        self.sealed_end = SealedEnd(file=self.file, sequence=sequence)


@dataclass
class Cluster:
    """All of one cluster."""

    spec: ClusterSpec
    created_at_ms: int | None = None
    status: ClusterStatus | None = None
    lanes: dict[int, Lane] = field(default_factory=dict)
    topics: dict[str, TopicHistory] = field(default_factory=dict)
    segments: dict[tuple[str, int], list[StoredSegment]] = field(default_factory=dict)
    let_go: dict[tuple[str, int], list[DroppedSegment]] = field(default_factory=dict)
    versions: dict[tuple[str, int], int] = field(default_factory=dict)
    # Lanes that are marked as wholly recorded.
    marked: set[int] = field(default_factory=set)

    @property
    def live(self) -> Lane | None:
        """The lane that the running broker writes."""
        lanes = [lane for lane in self.lanes.values() if lane.state == "live"]
        return lanes[-1] if lanes else None


class FakeCell:
    """The cell, which is also the reader of its storage."""

    def __init__(self, now_ms: int, *, blocks_read: int = 3) -> None:
        self.now_ms = now_ms
        self.clusters: dict[str, Cluster] = {}
        self.blocks_read = blocks_read
        self.looks: list[str] = []
        # Segments of deleted topics, which are not on storage any more.
        self.remembered: dict[tuple[str, int], list[StoredSegment]] = {}

    # Events in the cell.

    def add_cluster(self, cluster_id: str, organization_id: str = "org_1") -> Cluster:
        """A cluster that nobody used yet."""
        spec = ClusterSpec(
            id=cluster_id,
            name=cluster_id,
            organization_id=organization_id,
            generation=1,
            state="active",
            scale=1,
            idle_timeout_ms=1,
            ports=(),
            host=cluster_id,
            connections_max=1,
            wakes_per_minute_max=1,
        )
        self.clusters[cluster_id] = Cluster(spec)
        return self.clusters[cluster_id]

    def start(self, cluster_id: str) -> Lane:
        """A broker starts; what was live before it must have ended."""
        cluster = self.clusters[cluster_id]
        if cluster.created_at_ms is None:
            cluster.created_at_ms = self.now_ms
        lane = Lane(max(cluster.lanes, default=0) + 1, self.now_ms)
        cluster.lanes[lane.incarnation] = lane
        lane.append(self.now_ms)
        cluster.status = ClusterStatus(
            observed_generation=1, phase="running", since_ms=self.now_ms, brokers=(BROKER,)
        )
        return lane

    def create_topic(
        self,
        cluster_id: str,
        topic_id: str,
        *,
        partitions: int = 1,
        internal: bool = False,
        retention_ms: int | None = None,
        retention_bytes: int | None = None,
    ) -> None:
        """A topic."""
        self.clusters[cluster_id].topics[topic_id] = TopicHistory(
            id=topic_id,
            name=f"topic-{topic_id[-2:]}",
            internal=internal,
            created_at_ms=self.now_ms,
            deleted_at_ms=None,
            partition_counts=((self.now_ms, partitions),),
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            compacted=False,
        )

    def delete_topic(self, cluster_id: str, topic_id: str) -> None:
        """Deletes a topic; its manifests go with it."""
        cluster = self.clusters[cluster_id]
        topic = cluster.topics[topic_id]
        cluster.topics[topic_id] = replace(topic, deleted_at_ms=self.now_ms)
        for place in [place for place in cluster.segments if place[0] == topic_id]:
            self.remembered[place] = cluster.segments.pop(place)

    def produce(self, cluster_id: str, *entries: tuple[str, int, str, int]) -> None:
        """A block with records: topic, partition, principal, bytes."""
        lane = self._live(cluster_id)
        lane.append(self.now_ms, [Entry(t, p, who, INGRESS, n) for t, p, who, n in entries])

    def consume(self, cluster_id: str, topic: str, principal: str, size: int) -> None:
        """A usage block."""
        lane = self._live(cluster_id)
        total = lane.egress[topic, principal] = lane.egress.get((topic, principal), 0) + size
        lane.append(self.now_ms, [Entry(topic, -1, principal, EGRESS, size, total)])

    def roll(self, cluster_id: str) -> None:
        """The lane goes on in a new file, which begins with a checkpoint."""
        lane = self._live(cluster_id)
        lane.file += 1
        lane.append(self.now_ms)

    def split(self, cluster_id: str) -> None:
        """Every full file becomes segments and an index; of ended lanes all files do."""
        for lane in self.clusters[cluster_id].lanes.values():
            full = lane.file if lane.state == "live" else lane.file + 1
            for number in range(full):
                if number not in lane.split:
                    self._split(self.clusters[cluster_id], lane, number)

    def close(self, cluster_id: str) -> None:
        """The broker stops cleanly."""
        lane = self._live(cluster_id)
        lane.append(self.now_ms)
        lane.end(lane.last, "closed")
        self.split(cluster_id)
        self._asleep(cluster_id)

    def kill(self, cluster_id: str, *, tail_survives: bool) -> None:
        """The broker is killed and another one seals its lane, with or without the last block."""
        lane = self._live(cluster_id)
        lane.end(lane.last if tail_survives else lane.durable, "sealed")
        self._asleep(cluster_id)

    def retain(self, cluster_id: str, topic_id: str, partition: int, count: int) -> None:
        """Removes the oldest segments of a partition, as retention does."""
        cluster = self.clusters[cluster_id]
        place = (topic_id, partition)
        kept = cluster.segments.get(place, [])
        cluster.let_go.setdefault(place, []).extend(
            DroppedSegment(
                bytes=segment.bytes,
                written_at_ms=segment.written_at_ms,
                max_timestamp_ms=segment.max_timestamp_ms,
                dropped_at_ms=self.now_ms,
            )
            for segment in kept[:count]
        )
        del kept[:count]
        cluster.versions[place] = cluster.versions.get(place, 0) + 1

    def delete(self, cluster_id: str) -> None:
        """The control plane deletes the cluster; it can be restored."""
        if self.clusters[cluster_id].live:
            self.close(cluster_id)
        self._spec(cluster_id, state="deleted", since=self.now_ms)

    def restore(self, cluster_id: str) -> None:
        """The control plane restores the cluster."""
        self._spec(cluster_id, state="active", since=None)

    def purge(self, cluster_id: str) -> None:
        """Removes the cluster from the cell for ever."""
        del self.clusters[cluster_id]

    # The true usage.

    def stored(self, cluster_id: str, place: tuple[str, int]) -> PartitionSegments:
        """All segments that a partition ever had."""
        cluster = self.clusters[cluster_id]
        return PartitionSegments(
            topic_id=place[0],
            partition=place[1],
            name="",
            log_start=0,
            covered_end=0,
            segments=tuple(cluster.segments.get(place) or self.remembered.get(place) or ()),
            dropped=tuple(cluster.let_go.get(place, ())),
            split_by_day=self._split_by_day(cluster, place),
        )

    def true_rows(self) -> set[tuple[Any, ...]]:
        """Identity and quantity of every row of usage that is covered."""
        return {
            (
                name,
                lane.incarnation,
                block.file,
                block.sequence,
                entry.topic,
                None if entry.partition < 0 else entry.partition,
                entry.principal,
                "egress_bytes" if entry.meter == EGRESS else "ingress_bytes",
                block.written_at_ms // 60_000 * 60_000,
                entry.quantity,
            )
            for name, cluster in self.clusters.items()
            for lane in cluster.lanes.values()
            for block in lane.blocks
            if block.sequence <= lane.durable
            for entry in block.entries
        }

    def true_usage(self) -> dict[tuple[Any, ...], int]:
        """The same by lane file and minute: all of a true row's columns but its block."""
        usage: dict[tuple[Any, ...], int] = defaultdict(int)
        for name, incarnation, file, _, *place, quantity in self.true_rows():
            usage[(name, incarnation, file, *place)] += quantity
        return dict(usage)

    # `Source`.

    @property
    def reader(self) -> FakeCell:
        """Itself."""
        return self

    def specs(self) -> Mapping[str, ClusterSpec]:
        """See `Source`."""
        return {name: cluster.spec for name, cluster in self.clusters.items()}

    def statuses(self) -> Mapping[str, ClusterStatus]:
        """See `Source`."""
        return {name: cluster.status for name, cluster in self.clusters.items() if cluster.status}

    def topics(self, cluster_id: str) -> Sequence[TopicHistory]:
        """See `Source`."""
        return list(self.clusters[cluster_id].topics.values())

    def created_at_ms(self, cluster_id: str) -> int | None:
        """See `Source`."""
        return self.clusters[cluster_id].created_at_ms

    def lane_records(self, cluster_id: str) -> list[LaneRecord]:
        """See `Source.lanes`."""
        self.looks.append(cluster_id)
        return [
            LaneRecord(
                incarnation=lane.incarnation,
                state=lane.state,  # type: ignore[arg-type]
                started_at_ms=lane.started_at_ms,
                sealed_end=lane.sealed_end,
            )
            for lane in self.clusters[cluster_id].lanes.values()
        ]

    # `Reader`.

    def lanes(self, cluster_id: str) -> list[LaneFiles]:
        """See `Reader`."""
        if cluster_id not in self.clusters:
            return []
        return [
            LaneFiles(
                incarnation=lane.incarnation,
                indexes=tuple(sorted(lane.split - lane.dropped)),
                wals=tuple(n for n in range(lane.file + 1) if n not in lane.split),
            )
            for lane in self.clusters[cluster_id].lanes.values()
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
        """See `Reader`."""
        lane = self.clusters[cluster_id].lanes[incarnation]
        if lane.damaged:
            message = "a flipped bit"
            raise DamagedError(message)
        end = lane.durable if sealed_end is None else sealed_end.sequence
        there = [block for block in lane.blocks if block.file not in lane.dropped]
        covered = [block for block in there if after_sequence < block.sequence <= end]
        read, rest = covered[: self.blocks_read], covered[self.blocks_read :]
        last = read[-1] if read else None
        sequence = max(after_sequence, last.sequence if last else 0)
        missing = [block for block in lane.blocks if block.file in lane.dropped]
        first_kept = missing[-1].sequence + 1 if missing else 1
        uncovered = [block for block in there if block.sequence > sequence and block.entries]
        until = uncovered[0].written_at_ms - 1 if uncovered else self.now_ms
        unsplit = [block for block in there if block.data and block.file not in lane.split]
        ended = not rest and (final or sealed_end is not None)
        following = [block.file for block in there if block.sequence > sequence]
        return _reading(
            read,
            last_sequence=sequence,
            last_file=following[0] if following else max(lane.file, after_file),
            covered_until_ms=until,
            ended=ended,
            more=bool(rest),
            unsplit_since_ms=min((block.written_at_ms for block in unsplit), default=None),
            gap=(after_sequence + 1, first_kept - 1) if after_sequence + 1 < first_kept else None,
        )

    def drop_indexes(self, cluster_id: str, incarnation: int, *, below_file: int) -> int:
        """See `Reader`."""
        lane = self.clusters[cluster_id].lanes[incarnation]
        kept = sorted(lane.split - lane.dropped)[:-1]
        gone = {number for number in kept if number < below_file}
        lane.dropped |= gone
        return len(gone)

    def mark_metered(self, cluster_id: str, incarnation: int) -> bool:
        """See `Reader`."""
        self.clusters[cluster_id].marked.add(incarnation)
        return True

    def manifests(
        self, cluster_id: str, known: Mapping[tuple[str, int], str]
    ) -> list[PartitionSegments]:
        """See `Reader`."""
        if cluster_id not in self.clusters:
            return []
        cluster = self.clusters[cluster_id]
        changed = []
        for place, segments in sorted(cluster.segments.items()):
            name = f"{cluster.versions[place]}"
            if known.get(place) != name:
                changed.append(
                    PartitionSegments(
                        topic_id=place[0],
                        partition=place[1],
                        name=name,
                        log_start=0,
                        covered_end=0,
                        segments=tuple(segments),
                        dropped=tuple(cluster.let_go.get(place, ())),
                        split_by_day=self._split_by_day(cluster, place),
                    )
                )
        return changed

    # Helpers.

    def _split_by_day(
        self, cluster: Cluster, place: tuple[str, int]
    ) -> tuple[tuple[int, int], ...]:
        days: dict[int, int] = {}
        for segment in (*cluster.segments.get(place, ()), *cluster.let_go.get(place, ())):
            day_ms = floor_to(segment.written_at_ms, DAY_MS)
            days[day_ms] = days.get(day_ms, 0) + segment.bytes
        return tuple(sorted(days.items()))

    def _live(self, cluster_id: str) -> Lane:
        lane = self.clusters[cluster_id].live
        assert lane is not None
        return lane

    def _asleep(self, cluster_id: str) -> None:
        self.clusters[cluster_id].status = ClusterStatus(
            observed_generation=1, phase="asleep", since_ms=self.now_ms
        )

    def _spec(self, cluster_id: str, *, state: str, since: int | None) -> None:
        cluster = self.clusters[cluster_id]
        deletions = list(cluster.spec.deletions)
        if since is None:
            deletions[-1] = (deletions[-1][0], self.now_ms)
        else:
            deletions.append((since, None))
        cluster.spec = replace(
            cluster.spec,
            state=state,  # type: ignore[arg-type]
            deletions=tuple(deletions),
            generation=cluster.spec.generation + 1,
        )

    def _split(self, cluster: Cluster, lane: Lane, number: int) -> None:
        lane.split.add(number)
        blocks = [
            block
            for block in lane.blocks
            if block.file == number and block.sequence <= lane.durable
        ]
        sums: dict[tuple[str, int], tuple[int, int]] = {}
        for block in blocks:
            for entry in block.entries:
                topic = cluster.topics[entry.topic]
                if entry.meter == INGRESS and topic.deleted_at_ms is None:
                    place = (entry.topic, entry.partition)
                    size, _ = sums.get(place, (0, 0))
                    sums[place] = (size + entry.quantity, block.written_at_ms)
        for place, (size, written_at_ms) in sums.items():
            segment = StoredSegment(
                bytes=size, written_at_ms=written_at_ms, max_timestamp_ms=written_at_ms
            )
            cluster.segments.setdefault(place, []).append(segment)
            cluster.versions[place] = cluster.versions.get(place, 0) + 1


class FakeSource:
    """`FakeCell` as a `Source`: its `lanes` are the metadata store's."""

    def __init__(self, cell: FakeCell) -> None:
        self.cell = cell
        self.reader = cell
        self.specs = cell.specs
        self.statuses = cell.statuses
        self.topics = cell.topics
        self.created_at_ms = cell.created_at_ms
        self.lanes = cell.lane_records


def _reading(
    blocks: Sequence[Block],
    *,
    last_sequence: int,
    last_file: int,
    covered_until_ms: int,
    ended: bool,
    more: bool,
    unsplit_since_ms: int | None,
    gap: tuple[int, int] | None,
) -> LaneReading:
    rows = [(block, entry) for block in blocks for entry in block.entries]
    topics = sorted({entry.topic for _, entry in rows})
    principals = sorted({entry.principal for _, entry in rows})

    def column(kind: str, values: Sequence[int]) -> bytes:
        return array(kind, values).tobytes()

    return LaneReading(
        rows=len(rows),
        file=column("Q", [block.file for block, _ in rows]),
        sequence=column("Q", [block.sequence for block, _ in rows]),
        written_at_ms=column("q", [block.written_at_ms for block, _ in rows]),
        topic=column("I", [topics.index(entry.topic) for _, entry in rows]),
        partition=column("i", [entry.partition for _, entry in rows]),
        principal=column("I", [principals.index(entry.principal) for _, entry in rows]),
        meter=column("B", [entry.meter for _, entry in rows]),
        quantity=column("Q", [entry.quantity for _, entry in rows]),
        cumulative=column("Q", [entry.cumulative for _, entry in rows]),
        topics=tuple(topics),
        principals=tuple(principals),
        last_sequence=last_sequence,
        last_file=last_file,
        covered_until_ms=covered_until_ms,
        ended=ended,
        more=more,
        unsplit_since_ms=unsplit_since_ms,
        gap=gap,
    )

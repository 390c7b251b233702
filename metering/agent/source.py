"""What the agent reads of a cell: its interface, and the implementation for a real cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from brokers.errors import NotFoundError
from brokers.metadata import CellStore, ClusterSpec, ClusterStatus, LaneRecord, TopicHistory
from brokers.usage import LaneFiles, LaneReading, PartitionSegments, SealedEnd, UsageReader


class Reader(Protocol):
    """Reads a cell's storage. `brokers.usage.UsageReader` is the real one; tests have a fake."""

    def lanes(self, cluster_id: str) -> list[LaneFiles]:
        """The lanes of a cluster that are on storage."""

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
        """Reads covered blocks of a lane after the given place, a bounded number at a time."""

    def drop_indexes(self, cluster_id: str, incarnation: int, *, below_file: int) -> int:
        """Removes indexes of lane files below a number; returns how many."""

    def mark_metered(self, cluster_id: str, incarnation: int) -> bool:
        """Marks a lane as wholly recorded; returns whether the mark is there now."""

    def manifests(
        self, cluster_id: str, known: Mapping[tuple[str, int], str]
    ) -> list[PartitionSegments]:
        """The partitions whose manifest has another name than in `known` ((topic id, partition) →
        name)."""


class Source(Protocol):
    """What a cell says of its clusters. Calls raise `BrokerError` or `OSError`."""

    @property
    def reader(self) -> Reader:
        """The reader of the cell's storage."""

    def specs(self) -> Mapping[str, ClusterSpec]:
        """The specifications of all clusters that the cell has, by cluster id."""

    def statuses(self) -> Mapping[str, ClusterStatus]:
        """The clusters' statuses as the keeper reports them, by cluster id."""

    def lanes(self, cluster_id: str) -> Sequence[LaneRecord]:
        """The records of all lanes of a cluster, one for each incarnation."""

    def topics(self, cluster_id: str) -> Sequence[TopicHistory]:
        """All topics that a cluster has or had, with their history."""

    def created_at_ms(self, cluster_id: str) -> int | None:
        """When a cluster's own record was created; None where nobody used the cluster yet."""


class CellSource:
    """A real cell: its metadata store, and its storage through a `UsageReader`."""

    def __init__(self, *, metadata: str, dfs: Path, bucket: str) -> None:
        self._store = CellStore(metadata)
        self._reader = UsageReader(dfs=dfs, bucket=bucket)

    @property
    def reader(self) -> Reader:
        """See `Source`."""
        return self._reader

    def specs(self) -> Mapping[str, ClusterSpec]:
        """See `Source`."""
        return self._store.specs()

    def statuses(self) -> Mapping[str, ClusterStatus]:
        """See `Source`."""
        return self._store.statuses()

    def lanes(self, cluster_id: str) -> Sequence[LaneRecord]:
        """See `Source`."""
        return self._store.cluster(cluster_id).lanes()

    def topics(self, cluster_id: str) -> Sequence[TopicHistory]:
        """See `Source`."""
        return self._store.cluster(cluster_id).topics_history()

    def created_at_ms(self, cluster_id: str) -> int | None:
        """See `Source`."""
        try:
            return self._store.cluster(cluster_id).record().created_at_ms
        except NotFoundError:
            return None

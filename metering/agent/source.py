"""What the agent reads of a cell, and the cell as it is on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from brokers.errors import NotFoundError
from brokers.metadata import CellStore, ClusterSpec, ClusterStatus, LaneRecord, TopicHistory
from brokers.usage import LaneFiles, LaneReading, PartitionSegments, SealedEnd, UsageReader


class Reader(Protocol):
    """See `brokers.usage.UsageReader`, which it is but in tests."""

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
        """Covered blocks of a lane."""

    def drop_indexes(self, cluster_id: str, incarnation: int, *, below_file: int) -> int:
        """Removes indexes that are recorded."""

    def mark_metered(self, cluster_id: str, incarnation: int) -> bool:
        """Says in a lane that all of it is recorded; tells whether it does now."""

    def manifests(
        self, cluster_id: str, known: Mapping[tuple[str, int], str]
    ) -> list[PartitionSegments]:
        """What partitions keep, where it is not what is known."""


class Source(Protocol):
    """What is known of a cell's clusters. Calls raise `BrokerError` or `OSError`."""

    @property
    def reader(self) -> Reader:
        """Reads their storage."""

    def specs(self) -> Mapping[str, ClusterSpec]:
        """All clusters that are not gone, by id."""

    def statuses(self) -> Mapping[str, ClusterStatus]:
        """What the keeper sees of them."""

    def lanes(self, cluster_id: str) -> Sequence[LaneRecord]:
        """All starts of brokers of a cluster."""

    def topics(self, cluster_id: str) -> Sequence[TopicHistory]:
        """All topics that a cluster has or had."""

    def created_at_ms(self, cluster_id: str) -> int | None:
        """When a cluster's own record was made; None where nobody used it yet."""


class CellSource:
    """A cell: its metadata store, and its storage through a `UsageReader`. Both by location."""

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

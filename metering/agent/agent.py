"""Passes over the clusters of a cell. Each part of a cluster is written in this order: usage file,
manifest, progress, and then indexes are dropped. A crash between two of these loses nothing: the
next pass writes the same rows again, which count once.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from brokers.errors import BrokerError
from brokers.metadata import ClusterSpec, ClusterStatus
from metering.agent.cluster import Cell, ClusterMeter, Part
from metering.agent.files import UsageWriter
from metering.agent.metrics import Metrics
from metering.agent.progress import ClusterProgress, ProgressFolder
from metering.agent.recovery import recover_progress
from metering.events.errors import UsageFormatError
from metering.events.times import format_ms

LOGGER = logging.getLogger(__name__)

# Errors of one cluster that do not end the pass over the others.
CLUSTER_ERRORS = (BrokerError, OSError, ValueError)
# While the agent catches up, it logs once after this many files of a pass.
FILES_BETWEEN_LOGS = 20


@dataclass(frozen=True, slots=True)
class Share:
    """The clusters that an agent meters: share `index` of `agents`, by a hash of cluster ids."""

    agents: int = 1
    index: int = 0

    def takes(self, cluster_id: str) -> bool:
        """Whether a cluster is in the share."""
        digest = hashlib.sha256(cluster_id.encode()).digest()
        return int.from_bytes(digest[:8]) % self.agents == self.index


class Agent:
    """Meters a share of a cell's clusters. May be used by one thread at a time."""

    def __init__(
        self,
        cell: Cell,
        writer: UsageWriter,
        progress: ProgressFolder,
        metrics: Metrics,
        share: Share,
    ) -> None:
        self._cell = cell
        self._writer = writer
        self._folder = progress
        self._metrics = metrics
        self._share = share
        self._meters: dict[str, ClusterMeter] = {}
        self._progress: dict[str, ClusterProgress] = {}
        self._failing: set[str] = set()
        self._began_ms: int | None = None
        self._batch: list[Part] = []
        self._files = 0

    def run_pass(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Meters every cluster once. Where `stopping` returns true it ends early; what it recorded
        by then counts.

        Raises `BrokerError` or `OSError` where the cell or the usage store cannot be reached.
        """
        self._batch, self._files = [], 0
        statuses = self._cell.source.statuses()
        specs = self._cell.source.specs()
        mine = {cluster_id: spec for cluster_id, spec in specs.items() if self._takes(cluster_id)}
        gone_clusters = self._load_progress(mine)
        for cluster_id in sorted({*mine, *gone_clusters}):
            if stopping():
                break
            self._meter_cluster(cluster_id, mine.get(cluster_id), statuses, stopping)
        self._write_batch()
        self._report_coverage(mine)

    def _takes(self, cluster_id: str) -> bool:
        return self._share.takes(cluster_id)

    def _load_progress(self, specs: Mapping[str, ClusterSpec]) -> list[str]:
        """Loads the progress that is not in memory.

        Returns the clusters that are gone from the cell and whose end no manifest states yet.
        """
        first = self._began_ms is None
        if self._began_ms is None:
            self._began_ms = self._cell.now_ms()
        recorded = (
            {cluster for cluster in self._folder.clusters() if self._takes(cluster)}
            if first
            else ()
        )
        lost = set()
        for cluster_id in sorted({*specs, *recorded} - self._progress.keys()):
            loaded: ClusterProgress | None = None
            try:
                loaded = self._folder.load(cluster_id)
            except UsageFormatError as error:
                self._metrics.count_error("progress")
                LOGGER.error("%s: progress is lost: %s", cluster_id, error)
            if loaded is None and (first or not self._is_new(cluster_id)):
                lost.add(cluster_id)
            self._progress[cluster_id] = loaded or ClusterProgress()
        self._recover_progress(lost)
        all_progress = self._progress.items()
        return [
            cluster_id
            for cluster_id, progress in all_progress
            if cluster_id not in specs and progress.as_of_ms and not progress.closed
        ]

    def _is_new(self, cluster_id: str) -> bool:
        """Whether a cluster was created after this agent started; then no manifest can name it."""
        created_at_ms = self._cell.source.created_at_ms(cluster_id)
        return created_at_ms is None or created_at_ms >= (self._began_ms or 0)

    def _recover_progress(self, lost: Collection[str]) -> None:
        """Rebuilds the progress of clusters without a record from the manifests that name them."""
        if not lost:
            return
        recovered = recover_progress(
            self._cell.store, self._cell.name, lost, now_ms=self._cell.now_ms()
        )
        self._progress.update(recovered)
        if recovered:
            LOGGER.warning("progress of %d clusters was rebuilt from manifests", len(recovered))

    def _meter_cluster(
        self,
        cluster_id: str,
        spec: ClusterSpec | None,
        statuses: Mapping[str, ClusterStatus],
        stopping: Callable[[], bool],
    ) -> None:
        """Gathers the new parts of one cluster. Its errors are logged, and do not stop the pass."""
        meter = self._meters.setdefault(cluster_id, ClusterMeter(self._cell, cluster_id))
        before = self._progress[cluster_id]
        parts: Iterator[Part]
        if spec is None:
            parts = iter([meter.closing_part(before)])
        elif before.closed:
            return
        else:
            parts = meter.parts(spec, statuses.get(cluster_id), before)
        while not stopping():
            try:
                part = next(parts, None)
            except CLUSTER_ERRORS as error:
                self._failing.add(cluster_id)
                self._metrics.count_error("cluster")
                LOGGER.error("%s cannot be metered: %s", cluster_id, error)
                return
            if part is None:
                break
            self._add_part(part)
        if meter.failing:
            self._failing.add(cluster_id)
        else:
            self._failing.discard(cluster_id)

    def _add_part(self, part: Part) -> None:
        # A file has at most one entry for a cluster, and a bounded number of rows.
        rows = sum(gathered.rows for gathered in self._batch)
        same = any(gathered.cluster_id == part.cluster_id for gathered in self._batch)
        if same or rows + part.rows > self._cell.rows_max:
            self._write_batch()
        self._batch.append(part)

    def _write_batch(self) -> None:
        """Writes the gathered parts as one usage file. Raises `OSError`; the next pass then gathers
        the same rows again."""
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        manifest = self._writer.write(batch, self._cell.now_ms())
        self._metrics.count_file(rows=manifest.rows, size_bytes=manifest.size_bytes)
        self._files += 1
        if self._files % FILES_BETWEEN_LOGS == 0:
            reached = format_ms(manifest.window_end_ms)
            LOGGER.info("catching up: %d files, usage until %s", self._files, reached)
        for part in batch:
            saved = self._folder.save(part.cluster_id, part.after)
            self._progress[part.cluster_id] = saved
        self._drop_indexes(batch)

    def _drop_indexes(self, batch: Sequence[Part]) -> None:
        for part in batch:
            try:
                dropped = self._meters[part.cluster_id].drop_indexes(part.drops)
            except CLUSTER_ERRORS as error:
                # Nothing is lost: they are dropped with the next usage file of their lane.
                self._metrics.count_error("drop")
                LOGGER.warning(
                    "%s: indexes could not be dropped, and stay for now: %s", part.cluster_id, error
                )
            else:
                self._metrics.count_dropped_indexes(dropped)

    def _report_coverage(self, specs: Mapping[str, ClusterSpec]) -> None:
        now_ms = self._cell.now_ms()
        covered = [
            self._meters[cluster_id].covered_until_ms or self._progress[cluster_id].as_of_ms or 0
            for cluster_id in specs
            if cluster_id in self._meters
        ]
        self._failing &= specs.keys()
        self._metrics.report_pass(
            clusters=len(specs),
            failing=len(self._failing),
            covered_until_ms=min(covered, default=now_ms),
            now_ms=now_ms,
        )

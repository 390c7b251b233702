"""One pass after another over the clusters of a cell, in this order for each part of them:
usage file, manifest, progress, drop of indexes. A crash between two of these loses nothing: the
next pass says the same rows again.
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
from metering.agent.recovery import recover
from metering.events.errors import UsageFormatError
from metering.events.times import format_ms

LOGGER = logging.getLogger(__name__)

# What one cluster may fail with, and the others go on.
CLUSTER_ERRORS = (BrokerError, OSError, ValueError)
# While it catches up it says so, after so many files.
FILES_TOLD = 20


@dataclass(frozen=True, slots=True)
class Share:
    """Which clusters an agent takes: one of `agents` shares, by a hash of their ids."""

    agents: int = 1
    index: int = 0

    def takes(self, cluster_id: str) -> bool:
        """Tells whether a cluster is in the share."""
        digest = hashlib.sha256(cluster_id.encode()).digest()
        return int.from_bytes(digest[:8]) % self.agents == self.index


class Agent:
    """Meters its share of a cell's clusters. For one thread at a time."""

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
        """Looks at every cluster once. What it recorded when it is told to stop stands.

        Raises `BrokerError` or `OSError` where the cell or the usage store cannot be reached.
        """
        self._batch, self._files = [], 0
        statuses = self._cell.source.statuses()
        specs = self._cell.source.specs()
        mine = {cluster_id: spec for cluster_id, spec in specs.items() if self._takes(cluster_id)}
        gone = self._load(mine)
        for cluster_id in sorted({*mine, *gone}):
            if stopping():
                break
            self._meter(cluster_id, mine.get(cluster_id), statuses, stopping)
        self._emit()
        self._tell(mine)

    def _takes(self, cluster_id: str) -> bool:
        return self._share.takes(cluster_id)

    def _load(self, specs: Mapping[str, ClusterSpec]) -> list[str]:
        """Loads progress as far as it is not known; gives the clusters that are gone."""
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
                self._metrics.error("progress")
                LOGGER.error("%s: progress is lost: %s", cluster_id, error)
            if loaded is None and (first or not self._is_new(cluster_id)):
                lost.add(cluster_id)
            self._progress[cluster_id] = loaded or ClusterProgress()
        self._recover(lost)
        known = self._progress.items()
        return [each for each, at in known if each not in specs and at.as_of_ms and not at.closed]

    def _is_new(self, cluster_id: str) -> bool:
        """Tells whether a cluster came after this agent, so that no manifest can speak of it."""
        created_at_ms = self._cell.source.created_at_ms(cluster_id)
        return created_at_ms is None or created_at_ms >= (self._began_ms or 0)

    def _recover(self, lost: Collection[str]) -> None:
        """Makes progress anew for clusters without a record of which a manifest speaks."""
        if not lost:
            return
        found = recover(self._cell.store, self._cell.name, lost, now_ms=self._cell.now_ms())
        self._progress.update(found)
        if found:
            LOGGER.warning("progress of %d clusters was made anew", len(found))

    def _meter(
        self,
        cluster_id: str,
        spec: ClusterSpec | None,
        statuses: Mapping[str, ClusterStatus],
        stopping: Callable[[], bool],
    ) -> None:
        """Gathers what is new of one cluster. What is wrong with it stays with it."""
        meter = self._meters.setdefault(cluster_id, ClusterMeter(self._cell, cluster_id))
        before = self._progress[cluster_id]
        parts: Iterator[Part]
        if spec is None:
            parts = iter([meter.closing(before)])
        elif before.closed:
            return
        else:
            parts = meter.parts(spec, statuses.get(cluster_id), before)
        while not stopping():
            try:
                part = next(parts, None)
            except CLUSTER_ERRORS as error:
                self._failing.add(cluster_id)
                self._metrics.error("cluster")
                LOGGER.error("%s cannot be metered: %s", cluster_id, error)
                return
            if part is None:
                break
            self._add(part)
        if meter.failing:
            self._failing.add(cluster_id)
        else:
            self._failing.discard(cluster_id)

    def _add(self, part: Part) -> None:
        # A file has one entry a cluster, and a bounded number of rows.
        rows = sum(each.rows for each in self._batch)
        same = any(each.cluster_id == part.cluster_id for each in self._batch)
        if same or rows + part.rows > self._cell.rows_max:
            self._emit()
        self._batch.append(part)

    def _emit(self) -> None:
        """Records what was gathered. Raises `OSError`; then the next pass gathers it again."""
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        manifest = self._writer.write(batch, self._cell.now_ms())
        self._metrics.wrote(rows=manifest.rows, size_bytes=manifest.size_bytes)
        self._files += 1
        if self._files % FILES_TOLD == 0:
            reached = format_ms(manifest.window_end_ms)
            LOGGER.info("catching up: %d files, usage until %s", self._files, reached)
        for part in batch:
            saved = self._folder.save(part.cluster_id, part.after)
            self._progress[part.cluster_id] = saved
        self._drop(batch)

    def _drop(self, batch: Sequence[Part]) -> None:
        for part in batch:
            try:
                dropped = self._meters[part.cluster_id].drop(part.drops)
            except CLUSTER_ERRORS as error:
                # They are dropped with the next file of their lane.
                self._metrics.error("drop")
                LOGGER.warning("%s: indexes stay: %s", part.cluster_id, error)
            else:
                self._metrics.dropped(dropped)

    def _tell(self, specs: Mapping[str, ClusterSpec]) -> None:
        now_ms = self._cell.now_ms()
        covered = [
            self._meters[cluster_id].covered_until_ms or self._progress[cluster_id].as_of_ms or 0
            for cluster_id in specs
            if cluster_id in self._meters
        ]
        self._failing &= specs.keys()
        self._metrics.look(
            clusters=len(specs),
            failing=len(self._failing),
            covered_until_ms=min(covered, default=now_ms),
            now_ms=now_ms,
        )

"""A fake cell with agents on real folders, which can be made to crash at any step."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from metering.agent.agent import Agent, Share
from metering.agent.cluster import Cell
from metering.agent.files import UsageWriter
from metering.agent.metrics import Metrics
from metering.agent.progress import ClusterProgress, ProgressFolder
from metering.events.coverage import completeness
from metering.events.errors import UsageFormatError
from metering.events.manifests import UsageManifest
from metering.events.records import (
    BLOCKS_VERSION,
    FILES_VERSION,
    LANE_IDENTITY,
    VOLATILE,
    decode_usage,
)
from metering.events.store import FolderUsageStore, list_manifests, read_manifest
from metering.events.times import HOUR_MS
from tests.metering.agent.fake import FakeCell, FakeSource

START = 1_800_000_000_000 - 1_800_000_000_000 % HOUR_MS
CELL = "local"


class CrashError(BaseException):
    """The process is killed here."""


class Fuse:
    """Raises `CrashError` at a given step; None never."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.steps = 0

    def step(self) -> None:
        """Counts a step: a write to storage is about to begin, or has just ended."""
        self.steps += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise CrashError


class FusedStore:
    """A store whose process may be killed before and after each write."""

    def __init__(self, store: FolderUsageStore, fuse: Fuse) -> None:
        self._store, self._fuse = store, fuse
        self.get = store.get
        self.list = store.list

    def put_new(self, key: str, data: bytes) -> bool:
        """See `UsageStore`."""
        self._fuse.step()
        stored = self._store.put_new(key, data)
        self._fuse.step()
        return stored


# By what usage of lanes is summed, as `FakeCell.true_usage` has it.
USAGE = (
    *("cluster_id", "incarnation", "lane_file", "topic_id", "partition", "principal", "meter"),
    "window_start_ms",
)


class FusedProgress(ProgressFolder):
    """The same for progress."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        super().__init__(folder)
        self._fuse = fuse

    def save(self, cluster_id: str, progress: ClusterProgress) -> ClusterProgress:
        """See `ProgressFolder`."""
        self._fuse.step()
        saved = super().save(cluster_id, progress)
        self._fuse.step()
        return saved


class World:
    """A cell in memory, usage files in a folder, and agents."""

    def __init__(self, folder: Path, versions: Sequence[int] = (BLOCKS_VERSION,)) -> None:
        """`versions`: of the rows that agents make, one agent after the other, again and again."""
        self._versions = itertools.cycle(versions)
        self.cell = FakeCell(START + 7 * 60_000)
        self.store = FolderUsageStore(folder / "usage")
        self.progress = folder / "progress"
        self.fuse = Fuse()
        self.metrics = Metrics(CELL)
        self._tokens = itertools.count(1)

    def agent(self, share: Share | None = None, *, rows_max: int = 8) -> Agent:
        """An agent that just started."""
        store = FusedStore(self.store, self.fuse)
        cell = Cell(
            name=CELL,
            source=FakeSource(self.cell),
            store=store,
            now_ms=lambda: self.cell.now_ms,
            count_error=self.metrics.count_error,
            window_minutes=5,
            record_version=next(self._versions),
            rows_max=rows_max,
        )
        writer = UsageWriter(store, CELL, "agent", lambda: f"{next(self._tokens):016x}")
        progress = FusedProgress(self.progress, self.fuse)
        return Agent(cell, writer, progress, self.metrics, share or Share())

    def manifests(self) -> list[UsageManifest]:
        """All manifests that count."""
        readable = []
        until_ms = self.cell.now_ms + HOUR_MS
        for key in list_manifests(self.store, CELL, since_ms=START, until_ms=until_ms):
            try:
                readable.append(read_manifest(self.store, key, verify=True))
            except (UsageFormatError, FileNotFoundError):
                continue
        return readable

    def rows(self) -> list[dict[str, Any]]:
        """Every row once; fails where two of one identity disagree."""
        by_identity: dict[tuple[object, ...], dict[str, Any]] = {}
        for manifest in self.manifests():
            table = decode_usage(self.store.get(manifest.key))
            assert table.num_rows == manifest.rows
            for row in table.to_pylist():
                for name in VOLATILE:
                    del row[name]
                identity = tuple(row[name] for name in LANE_IDENTITY)
                identity += () if row["block"] is not None else (row["window_start_ms"],)
                assert by_identity.setdefault(identity, row) == row
        return list(by_identity.values())

    def lane_rows(self) -> set[tuple[Any, ...]]:
        """Rows of lanes as `FakeCell.true_rows` has them."""
        return {
            (
                row["cluster_id"],
                row["incarnation"],
                row["lane_file"],
                row["block"],
                row["topic_id"],
                row["partition"],
                row["principal"],
                row["meter"],
                row["window_start_ms"],
                row["quantity"],
            )
            for row in self.rows()
            if row["block"] is not None
        }

    def billed_usage(self) -> dict[tuple[Any, ...], int]:
        """Usage of lanes as `FakeCell.true_usage` has it: each lane file in one version alone."""
        rows = [row for row in self.rows() if row["lane_file"] is not None]
        summed = {_lane_file(row) for row in rows if row["schema_version"] == FILES_VERSION}
        usage: dict[tuple[Any, ...], int] = defaultdict(int)
        for row in rows:
            if row["schema_version"] == FILES_VERSION or _lane_file(row) not in summed:
                usage[tuple(row[name] for name in USAGE)] += row["quantity"]
        return dict(usage)

    def time_rows(self, meter: str) -> dict[tuple[Any, ...], int]:
        """Quantities of a meter of time, by cluster, topic, partition and window."""
        return {
            (
                row["cluster_id"],
                row["topic_id"],
                row["partition"],
                row["window_start_ms"],
                row["window_end_ms"],
            ): row["quantity"]
            for row in self.rows()
            if row["meter"] == meter
        }

    def complete_hours(self, cluster_id: str, since_ms: int = START) -> dict[int, bool]:
        """Which hours until now are complete."""
        hours = completeness(
            self.manifests(), cluster_id=cluster_id, since_ms=since_ms, until_ms=self.cell.now_ms
        )
        return {hour.hour_ms: hour.complete for hour in hours}


def _lane_file(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["cluster_id"], row["incarnation"], row["lane_file"]


def crash(agent: Agent, run: Callable[[Agent], None] = Agent.run_pass) -> bool:
    """Runs a pass; returns whether it was killed."""
    try:
        run(agent)
    except CrashError:
        return True
    return False

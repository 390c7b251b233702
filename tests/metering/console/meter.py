"""A metering agent in this process, over a real cell, with a time that the test sets."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from metering.agent.agent import Agent, Share
from metering.agent.cluster import Cell
from metering.agent.files import UsageWriter
from metering.agent.metrics import Metrics
from metering.agent.progress import ProgressFolder
from metering.agent.source import Source
from metering.events.keys import data_key, manifest_key
from metering.events.manifests import UsageManifest, encode_manifest
from metering.events.records import FILES_VERSION, decode_usage, encode_usage
from metering.events.store import list_manifests, read_manifest
from metering.periods import to_ms
from metering.stores import open_usage_store

Rows = list[dict[str, Any]]


class Meter:
    """An agent of the cell `cell`, which writes usage files to `location`."""

    def __init__(self, source: Source, progress: Path, location: str, *, cell: str) -> None:
        self.cell, self.location = cell, location
        self.store = open_usage_store(location)
        self.now_ms = 0
        self._source, self._progress = source, ProgressFolder(progress)
        self._tokens = 0
        self.start()

    def start(self, version: int = FILES_VERSION) -> None:
        """Starts an agent in place of the one before; `version` is that of its rows of lanes."""
        metrics = Metrics(self.cell)
        metered = Cell(
            self.cell,
            self._source,
            self.store,
            lambda: self.now_ms,
            metrics.count_error,
            record_version=version,
        )
        writer = UsageWriter(self.store, self.cell, "agent", self._token)
        self.agent = Agent(metered, writer, self._progress, metrics, Share())

    def run_pass(self, at: datetime) -> None:
        """Writes usage files of what is covered at that time."""
        self.now_ms = to_ms(at)
        self.agent.run_pass()

    def manifests(self) -> list[UsageManifest]:
        """The manifests of files with rows, in order."""
        keys = list_manifests(self.store, self.cell, since_ms=0, until_ms=self.now_ms + 1)
        readable = [read_manifest(self.store, key, verify=True) for key in keys]
        return [manifest for manifest in readable if manifest.rows]

    def rows(self) -> Rows:
        """All rows of all files."""
        files = [decode_usage(self.store.get(manifest.key)) for manifest in self.manifests()]
        return [row for file in files for row in file.to_pylist()]

    def write_again(self, manifest: UsageManifest, change: Callable[[Rows], Rows]) -> None:
        """Writes a copy of a file, whose rows `change` may make others."""
        rows = decode_usage(self.store.get(manifest.key))
        data = encode_usage(pa.Table.from_pylist(change(rows.to_pylist()), schema=rows.schema))
        key = data_key(self.cell, manifest.emitted_at_ms, self._token())
        size, digest = len(data), hashlib.sha256(data).hexdigest()
        copy = dataclasses.replace(manifest, key=key, size_bytes=size, sha256=digest, agent="b")
        assert self.store.put_new(key, data)
        assert self.store.put_new(manifest_key(key), encode_manifest(copy))

    def _token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:016x}"

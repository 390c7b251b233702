"""Writes a usage file: first its rows, then the manifest that makes them count."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from metering.agent.cluster import Part
from metering.agent.rows import stamp_rows
from metering.events.keys import data_key, manifest_key
from metering.events.manifests import UsageManifest, encode_manifest
from metering.events.records import encode_usage
from metering.events.store import UsageStore


@dataclass(frozen=True, slots=True)
class UsageWriter:
    """Writes usage files of one cell. `token` returns 16 random hex digits."""

    store: UsageStore
    cell: str
    agent: str
    token: Callable[[], str]

    def write(self, parts: Sequence[Part], emitted_at_ms: int) -> UsageManifest:
        """Stores parts of different clusters as one file that counts, and returns its manifest.

        Raises `OSError` where they do not count, or where that is unknown. The caller writes them
        again: the rows are the same, so they count once.
        """
        table = stamp_rows([table for part in parts for table in part.tables], emitted_at_ms)
        data = encode_usage(table)
        windows = pc.min_max(table["window_start_ms"])
        key = data_key(self.cell, emitted_at_ms, self.token())
        manifest = UsageManifest(
            cell=self.cell,
            key=key,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            rows=table.num_rows,
            window_start_ms=windows["min"].as_py() or 0,
            window_end_ms=pc.max(table["window_end_ms"]).as_py() or 0,
            emitted_at_ms=emitted_at_ms,
            agent=self.agent,
            clusters=tuple(part.entry for part in parts),
            topics={key: name for part in parts for key, name in part.topics.items()},
        )
        self._put_object(key, data)
        self._put_object(manifest_key(key), encode_manifest(manifest))
        return manifest

    def _put_object(self, key: str, data: bytes) -> None:
        if not self.store.put_new(key, data):
            message = f"the usage store has an object {key} already"
            raise FileExistsError(message)

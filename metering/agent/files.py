"""Writes one usage file: rows, then the manifest that makes them count."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from metering.agent.cluster import Part
from metering.agent.rows import stamped
from metering.events.keys import data_key, manifest_key
from metering.events.manifests import UsageManifest, encode_manifest
from metering.events.records import encode_usage
from metering.events.store import UsageStore


@dataclass(frozen=True, slots=True)
class UsageWriter:
    """Writes usage files of one cell. `token` gives 16 random hex digits."""

    store: UsageStore
    cell: str
    agent: str
    token: Callable[[], str]

    def write(self, parts: Sequence[Part], emitted_at_ms: int) -> UsageManifest:
        """Stores parts of different clusters as one file; they count once this returns.

        Raises `OSError`: then they do not count, or nobody knows whether they do; written again
        they are the same rows.
        """
        table = stamped([each for part in parts for each in part.tables], emitted_at_ms)
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
        self._put(key, data)
        self._put(manifest_key(key), encode_manifest(manifest))
        return manifest

    def _put(self, key: str, data: bytes) -> None:
        if not self.store.put_new(key, data):
            message = f"{key} is there already"
            raise FileExistsError(message)

"""Writes the samples of all clusters of a cell into files, one each 30 s.

The format is `provisioning.cell.sample_files`. A file has the clusters that changed since the last
one. The last sample of a cluster that goes to sleep is written at once, because people see it until
the cluster wakes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from brokers.objects import Objects
from console.base.runtime.clock import Clock
from console.base.runtime.health import Health
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.sample_files import (
    FILE_BYTES_FULL,
    HOUR_MS,
    PREFIX,
    encode_file,
    file_key,
    parse_key,
    sample_line,
)

LOGGER = logging.getLogger(__name__)

# Samples of a cluster are written no faster than this, but for the last one before it sleeps.
BYTES_PER_S_MAX = 4096
# Last samples are written together with those that follow within this time, and files that are
# written for them are no closer together.
GATHER_S = 0.25
# Pause before a file that could not be written is tried again, with the samples of that time.
RETRY_S = 2.0
# How long the keeper tries to write what is left when it ends.
CLOSE_S = 5.0

Content = Mapping[str, object]


@dataclass(slots=True)
class _Cluster:
    """The newest sample of a cluster, and what is written of it.

    `written`: the digest of the content that was written last. `next_ms`: before then it is not
    written again. `last`: nothing follows it before the cluster wakes. `waiters` are released once
    a sample is written that was taken at their time or later.
    """

    taken_at_ms: int
    content: bytes
    digest: bytes
    written: bytes = b""
    written_at_ms: int = 0
    next_ms: int = 0
    last: bool = False
    waiters: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)

    def release(self, taken_at_ms: int) -> None:
        """Releases those who wait for a sample of this time or an earlier one."""
        for waits_for_ms, waiter in self.waiters:
            if waits_for_ms <= taken_at_ms and not waiter.done():
                waiter.set_result(None)
        self.waiters = [entry for entry in self.waiters if not entry[1].done()]


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one file has of each cluster: (cluster, taken at, digest), and who had not changed."""

    lines: tuple[bytes, ...]
    written: tuple[tuple[str, int, bytes], ...]
    same: Mapping[str, int]
    whole: bool


class SampleWriter:
    """Keeps the newest sample of every cluster in memory, and writes the files."""

    def __init__(
        self,
        objects: Objects,
        *,
        clock: Clock,
        metrics: Metrics,
        interval_ms: int,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._metrics = metrics
        self._interval_ms = interval_ms
        self._leads = leads
        self._clusters: dict[str, _Cluster] = {}
        self._hurry = asyncio.Event()
        self._writing = asyncio.Lock()
        self._health = Health()
        # None until the terms of earlier keepers were read.
        self._term: int | None = None
        self._emitted_ms = 0
        self._whole_ms: int | None = None

    @property
    def failing(self) -> str | None:
        """Why the last file could not be written; None where it was."""
        return self._health.failure

    def offer(self, cluster_id: str, taken_at_ms: int, content: Content) -> None:
        """Takes a sample of a cluster, which the next file has if it changed."""
        coded = orjson.dumps(content)
        digest = hashlib.blake2b(coded, digest_size=16).digest()
        known = self._clusters.get(cluster_id)
        if known is None:
            self._clusters[cluster_id] = _Cluster(taken_at_ms, coded, digest)
        else:
            known.taken_at_ms, known.content, known.digest = taken_at_ms, coded, digest
            known.last = False

    async def offer_last(self, cluster_id: str, taken_at_ms: int, content: Content) -> None:
        """Takes the last sample before a sleep; returns once it or a later one is written.

        Where the caller stops waiting, it is still written as soon as that is possible. Where a
        later one is known, nothing is taken.
        """
        known = self._clusters.get(cluster_id)
        if known is not None and known.taken_at_ms > taken_at_ms:
            return
        self.offer(cluster_id, taken_at_ms, content)
        cluster = self._clusters[cluster_id]
        cluster.last = True
        waiter = asyncio.get_running_loop().create_future()
        cluster.waiters.append((taken_at_ms, waiter))
        self._hurry.set()
        await waiter

    def forget(self, cluster_id: str) -> None:
        """Drops the sample of a cluster that is gone."""
        cluster = self._clusters.pop(cluster_id, None)
        if cluster is not None:
            cluster.release(cluster.taken_at_ms)

    async def run(self) -> None:
        """Writes files until it is cancelled. A failure never ends it."""
        while True:
            try:
                done = await self.write()
            except Exception:
                # A defect must not end the samples of a whole cell.
                LOGGER.exception("samples could not be written, and are tried again")
                done = False
            if not done:
                await asyncio.sleep(RETRY_S)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_ms / 1000):
                    await self._hurry.wait()
                    await asyncio.sleep(GATHER_S)

    async def close(self) -> None:
        """Writes what is left, where that takes no longer than `CLOSE_S`."""
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(CLOSE_S):
                await self.write()

    async def write(self) -> bool:
        """Writes a file, or several where there is much. Returns whether nothing failed.

        Where another keeper may have the cell nothing is written, which is no failure: this
        process ends then.
        """
        async with self._writing:
            self._hurry.clear()
            if not self._leads():
                return True
            try:
                await self._take_term()
                whole = self._is_whole_due()
                for batch in self._batches(whole=whole):
                    await self._write_batch(batch)
                if whole:
                    self._whole_ms = self._clock.now_ms()
            except OSError as error:
                self._metrics.count("sample_file_failures")
                if self._health.failed(str(error) or type(error).__name__):
                    LOGGER.error("samples cannot be written, and are kept in memory: %s", error)
                return False
        if self._health.passed(asyncio.get_running_loop().time()):
            LOGGER.warning("samples are written again")
        return True

    async def _take_term(self) -> None:
        """Takes a term above those of all keepers whose files are there. Raises `OSError`."""
        if self._term is None:
            earlier = await asyncio.to_thread(_newest_term, self._objects)
            self._term = max(self._clock.now_ms(), earlier + 1)

    def _is_whole_due(self) -> bool:
        return self._whole_ms is None or self._clock.now_ms() - self._whole_ms >= HOUR_MS

    def _batches(self, *, whole: bool) -> list[_Batch]:
        """What is to be written now, in parts of about `FILE_BYTES_FULL` bytes."""
        now_ms = self._clock.now_ms()
        batches: list[_Batch] = []
        lines: list[bytes] = []
        written: list[tuple[str, int, bytes]] = []
        same: dict[str, int] = {}
        size = 0
        for cluster_id, cluster in self._clusters.items():
            changed = cluster.digest != cluster.written
            if cluster.last or whole or (changed and now_ms >= cluster.next_ms):
                line = sample_line(cluster_id, cluster.taken_at_ms, cluster.content)
                lines.append(line)
                written.append((cluster_id, cluster.taken_at_ms, cluster.digest))
                size += len(line)
            elif not changed and cluster.taken_at_ms > cluster.written_at_ms:
                same[cluster_id] = cluster.taken_at_ms
                size += len(cluster_id) + 20
            if size >= FILE_BYTES_FULL:
                batches.append(_Batch(tuple(lines), tuple(written), same, whole))
                lines, written, same, size = [], [], {}, 0
        if lines or same:
            batches.append(_Batch(tuple(lines), tuple(written), same, whole))
        return batches

    async def _write_batch(self, batch: _Batch) -> None:
        term = self._term or 0
        self._emitted_ms = max(self._clock.now_ms(), self._emitted_ms + 1)
        emitted_ms = self._emitted_ms

        def put() -> int:
            data = encode_file(
                batch.lines, batch.same, emitted_at_ms=emitted_ms, term=term, whole=batch.whole
            )
            if not self._objects.put_new(file_key(emitted_ms, term), data):
                message = "there is a file of this name"
                raise FileExistsError(message)
            return len(data)

        size = await asyncio.to_thread(put)
        self._metrics.count("sample_files")
        self._metrics.count("sample_file_bytes", size)
        self._note_written(batch.written, batch.same)

    def _note_written(
        self, written: Sequence[tuple[str, int, bytes]], same: Mapping[str, int]
    ) -> None:
        """Notes what is written. Samples that came meanwhile stay to be written."""
        for cluster_id, taken_at_ms in same.items():
            if cluster_id in self._clusters:
                self._clusters[cluster_id].written_at_ms = taken_at_ms
        now_ms = self._clock.now_ms()
        for cluster_id, taken_at_ms, digest in written:
            cluster = self._clusters.get(cluster_id)
            if cluster is None:
                continue
            cluster.written, cluster.written_at_ms = digest, taken_at_ms
            cluster.next_ms = now_ms + len(cluster.content) * 1000 // BYTES_PER_S_MAX
            if cluster.last and cluster.taken_at_ms == taken_at_ms:
                # It sleeps, so nothing of it changes any more.
                del self._clusters[cluster_id]
            cluster.release(taken_at_ms)


def _newest_term(objects: Objects) -> int:
    """The greatest term of the files that are there; 0 without any. Raises `OSError`."""
    keys = (parse_key(key) for key in objects.list(PREFIX))
    return max((key.term for key in keys if key is not None), default=0)

"""The metadata store for the event loop: its calls block in threads, never in the loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from brokers.metadata_records import Sample
from console.base.runtime.health import Health
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.records import DesiredClusters, Status, Store, StoreError
from provisioning.cell.notes import CellHealth, Removal

LOGGER = logging.getLogger(__name__)

Answer = TypeVar("Answer")

# Several threads, so that one slow call does not hold up the others.
THREADS = 4
# A call that takes longer counts as failed. It may still take effect; the caller repeats it later.
CALL_TIMEOUT_S = 10.0


@dataclass
class _Writes:
    """Orders the writes of one cluster's status. `last` is the number of the last one requested."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    last: int = 0


class AsyncStore:
    """Calls a `Store` in threads. Every call raises `StoreError`, also where it takes too long."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="store")
        # A watch blocks for long, so it has a thread of its own.
        self._watcher = ThreadPoolExecutor(1, thread_name_prefix="store-watch")
        self._writes: dict[str, _Writes] = {}
        self._health = Health()

    @property
    def failing(self) -> str | None:
        """Why the last call failed; None where it succeeded."""
        return self._health.failure

    async def statuses(self) -> Mapping[str, Status]:
        """See `Store.statuses`."""
        return await self._call_in_thread(self._store.statuses)

    async def desired(self) -> DesiredClusters:
        """See `Store.desired`."""
        return await self._call_in_thread(self._store.desired)

    async def put_status(self, cluster_id: str, status: Status) -> None:
        """Writes a status. A call that timed out never overwrites the status of a later call."""
        writes = self._writes.setdefault(cluster_id, _Writes())
        writes.last = number = writes.last + 1

        def write() -> None:
            if not writes.lock.acquire(timeout=CALL_TIMEOUT_S):
                message = "an earlier write of this status has not returned"
                raise StoreError(message)
            try:
                if number == writes.last:
                    self._store.put_status(cluster_id, status)
            finally:
                writes.lock.release()

        await self._call_in_thread(write)

    async def remove_wake(self, cluster_id: str, revision: int) -> None:
        """See `Store.remove_wake`."""
        await self._call_in_thread(lambda: self._store.remove_wake(cluster_id, revision))

    async def earlier_samples(self) -> Mapping[str, Sample]:
        """See `Store.earlier_samples`."""
        return await self._call_in_thread(self._store.earlier_samples)

    async def remove_earlier_sample(self, cluster_id: str) -> None:
        """See `Store.remove_earlier_sample`."""
        await self._call_in_thread(lambda: self._store.remove_earlier_sample(cluster_id))

    async def removal(self, cluster_id: str) -> Removal | None:
        """See `Store.removal`."""
        return await self._call_in_thread(lambda: self._store.removal(cluster_id))

    async def forget(self, cluster_id: str) -> None:
        """See `Store.forget`."""
        await self._call_in_thread(lambda: self._store.forget(cluster_id))

    async def health(self) -> CellHealth | None:
        """See `Store.health`."""
        return await self._call_in_thread(self._store.health)

    async def put_health(self, health: CellHealth) -> None:
        """See `Store.put_health`."""
        await self._call_in_thread(lambda: self._store.put_health(health))

    async def watch(self, after_revision: int, timeout_s: float) -> int:
        """See `Store.watch`."""
        call = asyncio.get_running_loop().run_in_executor(
            self._watcher, self._store.watch, after_revision, timeout_s
        )
        return await self._await_call(call, timeout_s + CALL_TIMEOUT_S)

    def close(self) -> None:
        """Starts no more calls, and ends the watch."""
        self._store.interrupt()
        for pool in (self._pool, self._watcher):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _call_in_thread(self, call: Callable[[], Answer]) -> Answer:
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        return await self._await_call(future, CALL_TIMEOUT_S)

    async def _await_call(self, future: asyncio.Future[Answer], timeout_s: float) -> Answer:
        """Waits for a call.

        Logs once when the store begins to fail, and once when it answers again.
        """
        try:
            async with asyncio.timeout(timeout_s):
                answer = await future
        except (StoreError, TimeoutError) as error:
            reason = str(error) or f"no answer within {timeout_s:.0f} s"
            self._metrics.count("store_failures")
            if self.failing is None:
                LOGGER.error("the metadata store fails, brokers go on as they are: %s", reason)
            self._health.failed(reason)
            raise StoreError(reason) from error
        if self._health.passed(asyncio.get_running_loop().time()):
            LOGGER.warning("the metadata store answers again")
        return answer

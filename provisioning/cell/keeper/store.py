"""The metadata store from the event loop: its calls wait in threads, never in the loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from console.base.runtime.health import Health
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.records import Status, Store, StoreError, Wanted
from provisioning.cell.notes import CellHealth, Removal

LOGGER = logging.getLogger(__name__)

Answer = TypeVar("Answer")

# Several, so that one slow call does not hold up the others.
THREADS = 4
# A call that takes longer counts as failed; what it does meanwhile is repeated later.
CALL_TIMEOUT_S = 10.0


@dataclass
class _Writes:
    """Writes of one cluster's status: one at a time, and `last` is the number of the last."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    last: int = 0


class AsyncStore:
    """Calls a `Store` in threads. Every call raises `StoreError`."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="store")
        # The watch waits for long: it has a thread of its own.
        self._watcher = ThreadPoolExecutor(1, thread_name_prefix="store-watch")
        self._writes: dict[str, _Writes] = {}
        self._health = Health()

    @property
    def failing(self) -> str | None:
        """Why the last call failed; None where it did not."""
        return self._health.failure

    async def statuses(self) -> Mapping[str, Status]:
        """All statuses, by cluster id."""
        return await self._call(self._store.statuses)

    async def wanted(self) -> Wanted:
        """All specs and wake requests."""
        return await self._call(self._store.wanted)

    async def put_status(self, cluster_id: str, status: Status) -> None:
        """Writes a status. A call that was given up writes nothing over a later one."""
        writes = self._writes.setdefault(cluster_id, _Writes())
        writes.last = number = writes.last + 1

        def write() -> None:
            if not writes.lock.acquire(timeout=CALL_TIMEOUT_S):
                message = "the write before hangs"
                raise StoreError(message)
            try:
                if number == writes.last:
                    self._store.put_status(cluster_id, status)
            finally:
                writes.lock.release()

        await self._call(write)

    async def remove_wake(self, cluster_id: str, revision: int) -> None:
        """Removes a wake request, unless there is a later one."""
        await self._call(lambda: self._store.remove_wake(cluster_id, revision))

    async def put_sample(
        self, cluster_id: str, taken_at_ms: int, content: Mapping[str, object]
    ) -> None:
        """Writes a sample."""
        await self._call(lambda: self._store.put_sample(cluster_id, taken_at_ms, content))

    async def removal(self, cluster_id: str) -> Removal | None:
        """What the control plane tells of a cluster that it purged."""
        return await self._call(lambda: self._store.removal(cluster_id))

    async def forget(self, cluster_id: str) -> None:
        """Removes all that the cell has of a purged cluster."""
        await self._call(lambda: self._store.forget(cluster_id))

    async def health(self) -> CellHealth | None:
        """What was told of the cell last."""
        return await self._call(self._store.health)

    async def put_health(self, health: CellHealth) -> None:
        """Tells how the cell's brokers are."""
        await self._call(lambda: self._store.put_health(health))

    async def watch(self, after_revision: int, timeout_s: float) -> int:
        """See `Store.watch`."""
        call = asyncio.get_running_loop().run_in_executor(
            self._watcher, self._store.watch, after_revision, timeout_s
        )
        return await self._noted(call, timeout_s + CALL_TIMEOUT_S)

    def close(self) -> None:
        """Starts no more calls, and ends the watch."""
        self._store.interrupt()
        for pool in (self._pool, self._watcher):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _call(self, call: Callable[[], Answer]) -> Answer:
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        return await self._noted(future, CALL_TIMEOUT_S)

    async def _noted(self, future: asyncio.Future[Answer], timeout_s: float) -> Answer:
        """Waits for a call. Says once that the store fails, and once that it is back."""
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

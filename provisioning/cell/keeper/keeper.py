"""The keeper of a cell: a `Cluster` for each cluster, told what the store and the driver say."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter

from provisioning.cell.drivers.base import Answer, BrokerState
from provisioning.cell.keeper.cluster import Cell, Cluster
from provisioning.cell.keeper.records import Phase, Spec, Status, StoreError, Wake
from provisioning.cell.keeper.watchman import Watchman

LOGGER = logging.getLogger(__name__)

WATCH_S = 2.0
# Between two attempts while the metadata store fails.
STORE_RETRY_S = 0.5
# Everything is read again after this long, so that nothing depends on a change having been told.
SWEEP_S = 30.0
# Between two looks at how the cell's brokers are.
HEALTH_S = 2.0


class Keeper:
    """Keeps the clusters of one cell."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._clusters: dict[str, Cluster] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # As an earlier keeper left them; None until they were read.
        self._statuses: dict[str, Status] | None = None

    def phases(self) -> Counter[Phase]:
        """How many clusters are in each phase."""
        return Counter(cluster.phase for cluster in self._clusters.values())

    def broker_states(self) -> Counter[BrokerState]:
        """How many brokers were in each state when they were last looked at."""
        clusters = self._clusters.values()
        return Counter(state for cluster in clusters for state in cluster.broker_states)

    def cluster_ids(self) -> frozenset[str]:
        """The clusters that it keeps an eye on."""
        return frozenset(self._clusters)

    def broker_pids(self, cluster_id: str) -> list[int | None]:
        """Processes that serve a cluster, as far as it decided already."""
        cluster = self._clusters.get(cluster_id)
        return [] if cluster is None else [broker.pid for broker in cluster.brokers]

    def unwell(self) -> str | None:
        """Why it is not well; None where it is."""
        failing, platform = self._cell.store.failing, self._cell.driver.unwell()
        if failing is not None:
            return f"metadata store: {failing}"
        return None if platform is None else f"platform: {platform}"

    async def start(self) -> None:
        """Takes over the brokers that run. Raises `OSError` where the driver cannot work."""
        self._cell.driver.notify(self._on_driver_change)
        await self._cell.driver.start()

    async def run(self) -> None:
        """Keeps them, until it is cancelled."""
        beside = {asyncio.create_task(self._watch_health(), name="health of the cell")}
        if self._cell.maintenance is not None:
            beside.add(asyncio.create_task(self._cell.maintenance.run(), name="etcd"))
        try:
            await self._follow_again()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    async def _follow_again(self) -> None:
        while True:
            try:
                await self._follow()
            except StoreError:
                # What runs goes on: the driver replaces brokers by itself.
                await asyncio.sleep(STORE_RETRY_S)

    async def _watch_health(self) -> None:
        """Tells how brokers are, and holds deletions while too many are not well."""
        watchman = Watchman(self._cell)
        while True:
            try:
                await watchman.look(list(self._clusters.values()))
            except Exception:
                # It is asked again in a moment; nobody else could.
                LOGGER.exception("the cell's health could not be told")
            await asyncio.sleep(HEALTH_S)

    async def close(self, *, leads: bool = True) -> None:
        """Stops the brokers where the settings say so and the cell is still ours, and ends."""
        if leads and self._cell.settings.keeper.stop_brokers_on_exit:
            await self._stop_brokers()
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        await self._cell.driver.close()
        self._cell.store.close()

    async def _stop_brokers(self) -> None:
        """All at once, within a bound; what is left then is killed, and loses nothing."""
        # Asked to end before it learned what there is: their status must not say that they run.
        with contextlib.suppress(StoreError):
            await self._refresh()
        for cluster in self._clusters.values():
            cluster.leave()
        unknown = await self._cell.driver.clusters() - frozenset(self._clusters)
        for cluster_id in unknown:
            await self._cell.driver.stop(cluster_id, clean=True)
        timeout_s = self._cell.settings.keeper.stop_timeout_ms / 1000
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._until_vacant(unknown)
                return
        LOGGER.warning("brokers did not stop within %.0f s, and are killed", timeout_s)
        for cluster_id in await self._cell.driver.clusters():
            outcome = await self._cell.driver.stop(cluster_id, clean=False)
            if outcome.answer is not Answer.ACCEPTED:
                LOGGER.warning("%s: was not killed: %s", cluster_id, outcome.message)

    async def _until_vacant(self, unknown: frozenset[str]) -> None:
        while not all(cluster.vacant for cluster in self._clusters.values()) or any(
            [(await self._cell.driver.observe(cluster_id)).brokers for cluster_id in unknown]
        ):
            await asyncio.sleep(0.02)

    async def _follow(self) -> None:
        """Hands out what is wanted, at first and at each change. Raises `StoreError`."""
        revision = await self._refresh()
        sweep_at = _now() + SWEEP_S
        while True:
            seen = await self._cell.store.watch(revision, WATCH_S)
            if seen != revision or _now() >= sweep_at:
                await self._refresh()
                revision, sweep_at = seen, _now() + SWEEP_S

    async def _refresh(self) -> int:
        """Hands out what is wanted now; gives its revision."""
        if self._statuses is None:
            self._statuses = dict(await self._cell.store.statuses())
        wanted = await self._cell.store.wanted()
        specs, wakes = wanted.specs, wanted.wakes
        kept = await self._cell.driver.clusters()
        for cluster_id in specs.keys() | wakes.keys() | kept | self._clusters.keys():
            self._update(
                cluster_id, specs.get(cluster_id), wakes.get(cluster_id), kept=cluster_id in kept
            )
        return wanted.revision

    def _update(self, cluster_id: str, spec: Spec | None, wake: Wake | None, *, kept: bool) -> None:
        cluster = self._clusters.get(cluster_id)
        if cluster is None:
            if spec is None and wake is None and not kept:
                return
            # A later cluster of this id begins without its past.
            status = self._statuses.pop(cluster_id, None) if self._statuses else None
            cluster = Cluster(cluster_id, self._cell, status, kept=kept)
            self._clusters[cluster_id] = cluster
            cluster.update(spec, wake)
            task = asyncio.create_task(cluster.run(), name=f"cluster {cluster_id}")
            self._tasks[cluster_id] = task
            return
        cluster.update(spec, wake)
        if spec is None:
            # Whether it was purged is told by no change of what is watched.
            cluster.poke()
        if cluster.over:
            del self._clusters[cluster_id]
            self._tasks.pop(cluster_id).cancel()

    def _on_driver_change(self, cluster_id: str) -> None:
        cluster = self._clusters.get(cluster_id)
        if cluster is not None:
            cluster.poke()


def _now() -> float:
    return asyncio.get_running_loop().time()

"""The keeper of a cell: runs a `ClusterTask` for each cluster, and passes changes on to them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter

from brokers.metadata_records import Sample
from provisioning.cell.drivers.base import Answer, BrokerState
from provisioning.cell.keeper.cluster import CellParts, ClusterTask
from provisioning.cell.keeper.records import ClusterPhase, Spec, Status, StoreError, Wake
from provisioning.cell.keeper.watchman import Watchman

LOGGER = logging.getLogger(__name__)

# How long one watch of the metadata store waits.
WATCH_S = 2.0
# Pause between two attempts while the metadata store fails.
STORE_RETRY_S = 0.5
# Everything is read again at this interval, so that nothing depends on an event of the watch.
SWEEP_S = 30.0
# Interval at which the health of the cell is looked at.
HEALTH_S = 2.0
# Interval at which it is asked whether an earlier release left samples in the metadata store.
EARLIER_S = 3600.0


class Keeper:
    """Keeps the clusters of one cell."""

    def __init__(self, cell: CellParts) -> None:
        self._cell = cell
        self._clusters: dict[str, ClusterTask] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # The statuses that an earlier keeper wrote; None until they were read.
        self._statuses: dict[str, Status] | None = None

    def phases(self) -> Counter[ClusterPhase]:
        """How many clusters are in each phase."""
        return Counter(cluster.phase for cluster in self._clusters.values())

    def broker_states(self) -> Counter[BrokerState]:
        """How many brokers were in each state when they were last looked at."""
        clusters = self._clusters.values()
        return Counter(state for cluster in clusters for state in cluster.broker_states)

    def cluster_ids(self) -> frozenset[str]:
        """The ids of all clusters that have a task."""
        return frozenset(self._clusters)

    def broker_pids(self, cluster_id: str) -> list[int | None]:
        """The pids of a cluster's serving brokers, as the last decision has them."""
        cluster = self._clusters.get(cluster_id)
        return [] if cluster is None else [broker.pid for broker in cluster.brokers]

    def unwell(self) -> str | None:
        """Why the keeper is not healthy, for `/healthz`; None where it is."""
        parts = (
            ("metadata store", self._cell.store.failing),
            ("platform", self._cell.driver.unwell()),
            ("samples", self._cell.samples.failing),
        )
        reasons = (f"{part}: {reason}" for part, reason in parts if reason is not None)
        return next(reasons, None)

    async def start(self) -> None:
        """Starts the driver, which takes over running brokers.

        Raises `OSError` where that fails.
        """
        self._cell.driver.notify(self._on_driver_change)
        await self._cell.driver.start()

    async def run(self) -> None:
        """Keeps the clusters until it is cancelled."""
        beside = {
            asyncio.create_task(self._watch_health(), name="health of the cell"),
            asyncio.create_task(self._cell.samples.run(), name="samples"),
            asyncio.create_task(self._take_earlier_samples(), name="samples of an earlier release"),
        }
        if self._cell.maintenance is not None:
            beside.add(asyncio.create_task(self._cell.maintenance.run(), name="etcd"))
        try:
            await self._follow_store_forever()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    async def _follow_store_forever(self) -> None:
        while True:
            try:
                await self._follow_store()
            except StoreError:
                # Brokers go on meanwhile: the driver replaces them by itself.
                await asyncio.sleep(STORE_RETRY_S)

    async def _watch_health(self) -> None:
        """Looks at the health of the cell at an interval."""
        watchman = Watchman(self._cell)
        while True:
            try:
                await watchman.look(list(self._clusters.values()))
            except Exception:
                # The next look repeats it; nothing else would start this task again.
                LOGGER.exception("a look at the health of the cell failed, and is repeated")
            await asyncio.sleep(HEALTH_S)

    async def _take_earlier_samples(self) -> None:
        """Moves samples that an earlier release left in the metadata store, once an hour.

        Until then people see of a cluster that sleeps what is in them.
        """
        while True:
            pause_s = EARLIER_S
            try:
                earlier = await self._cell.store.earlier_samples()
                # Together, so that one file takes many.
                await asyncio.gather(*(self._move_sample(*entry) for entry in earlier.items()))
            except StoreError:
                pause_s = STORE_RETRY_S
            except Exception:
                LOGGER.exception("samples of an earlier release could not be moved")
            await asyncio.sleep(pause_s)

    async def _move_sample(self, cluster_id: str, sample: Sample) -> None:
        """Writes a sample to a file, unless a later one is known, and removes its record."""
        await self._cell.samples.offer_last(cluster_id, sample.taken_at_ms, sample.content)
        await self._cell.store.remove_earlier_sample(cluster_id)

    async def close(self, *, leads: bool = True) -> None:
        """Ends the keeper.

        Stops the brokers where the settings say so and it still has the cell.
        """
        if leads and self._cell.settings.keeper.stop_brokers_on_exit:
            await self._stop_brokers()
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        if leads:
            await self._cell.samples.close()
        await self._cell.driver.close()
        self._cell.store.close()

    async def _stop_brokers(self) -> None:
        """Stops all brokers within the time limit, then kills the others, which lose no records."""
        # A keeper may end before its first read of the store. Then its clusters are read now, or
        # their stored status would go on saying that they run.
        with contextlib.suppress(StoreError):
            await self._hand_out_desired()
        for cluster in self._clusters.values():
            cluster.stop_for_exit()
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
                LOGGER.warning(
                    "%s: its brokers could not be killed: %s", cluster_id, outcome.message
                )

    async def _until_vacant(self, unknown: frozenset[str]) -> None:
        while not all(cluster.vacant for cluster in self._clusters.values()) or any(
            [(await self._cell.driver.observe(cluster_id)).brokers for cluster_id in unknown]
        ):
            await asyncio.sleep(0.02)

    async def _follow_store(self) -> None:
        """Hands out specs and wake requests, first and at each change. Raises `StoreError`."""
        revision = await self._hand_out_desired()
        sweep_at = _now() + SWEEP_S
        while True:
            seen = await self._cell.store.watch(revision, WATCH_S)
            if seen != revision or _now() >= sweep_at:
                await self._hand_out_desired()
                revision, sweep_at = seen, _now() + SWEEP_S

    async def _hand_out_desired(self) -> int:
        """Hands out the current specs and wake requests. Returns their revision."""
        if self._statuses is None:
            self._statuses = dict(await self._cell.store.statuses())
        desired = await self._cell.store.desired()
        specs, wakes = desired.specs, desired.wakes
        kept = await self._cell.driver.clusters()
        for cluster_id in specs.keys() | wakes.keys() | kept | self._clusters.keys():
            self._update_cluster(
                cluster_id, specs.get(cluster_id), wakes.get(cluster_id), kept=cluster_id in kept
            )
        return desired.revision

    def _update_cluster(
        self, cluster_id: str, spec: Spec | None, wake: Wake | None, *, kept: bool
    ) -> None:
        cluster = self._clusters.get(cluster_id)
        if cluster is None:
            if spec is None and wake is None and not kept:
                return
            # The status is taken out, so that a later cluster of this id begins without one.
            status = self._statuses.pop(cluster_id, None) if self._statuses else None
            cluster = ClusterTask(cluster_id, self._cell, status, kept=kept)
            self._clusters[cluster_id] = cluster
            cluster.update(spec, wake)
            task = asyncio.create_task(cluster.run(), name=f"cluster {cluster_id}")
            self._tasks[cluster_id] = task
            return
        cluster.update(spec, wake)
        if spec is None:
            # The `Removal` is not among the watched keys, so the task has to look for it.
            cluster.poke()
        if cluster.is_gone:
            del self._clusters[cluster_id]
            self._tasks.pop(cluster_id).cancel()
            self._cell.samples.forget(cluster_id)

    def _on_driver_change(self, cluster_id: str) -> None:
        cluster = self._clusters.get(cluster_id)
        if cluster is not None:
            cluster.poke()


def _now() -> float:
    return asyncio.get_running_loop().time()

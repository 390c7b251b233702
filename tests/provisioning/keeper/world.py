"""A cell for the keeper's tests, with folders, a secret, a store in memory and real brokers."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from brokers.backoff import Backoff
from brokers.metadata_records import BrokerStatus
from brokers.objects import FolderObjects
from brokers.secrets import SUPER_USER, create_cell_secret, link_secret, super_password
from console.base.runtime.clock import SteadyClock
from provisioning.cell.drivers.base import Driver
from provisioning.cell.drivers.local import LocalDriver
from provisioning.cell.drivers.slot import LocalOptions
from provisioning.cell.keeper.cluster import CellParts
from provisioning.cell.keeper.keeper import Keeper
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.records import ClusterPhase, Spec, SpecState, Status
from provisioning.cell.keeper.sample_writer import SampleWriter
from provisioning.cell.keeper.settings import CellSettings, KeeperSettings, LoopSettings
from provisioning.cell.keeper.store import AsyncStore
from tests.provisioning.keeper.link import Linked, connect
from tests.provisioning.keeper.memory import MemoryStore

# A time limit that a test reaches only where something is wrong.
LIMIT_S = 120.0
# 0 means never: such a cluster runs from the beginning, without a wake request.
IDLE_TIMEOUT_MS = 600_000
CLUSTER = "cl_a"
ROOT = Path(__file__).parents[3]

# Settings of small and fast brokers.
BROKER: dict[str, dict[str, object]] = {
    "topics": {"offsets_partitions": 4},
    "groups": {"initial_rebalance_delay_ms": 0},
    "threads": {"runtime": 1},
}


class World:
    """A cell in a folder. A test may set `wrap` to wrap the driver of each keeper."""

    def __init__(self, folder: Path, **settings: int | bool) -> None:
        self.folder = folder
        self.store = MemoryStore()
        self.metrics = Metrics()
        self.wrap: Callable[[Driver], Driver] = lambda driver: driver
        self.broker: dict[str, dict[str, object]] = BROKER
        self.loop: dict[str, Any] = {
            "scrape_interval_ms": 50,
            "sample_interval_ms": 100,
            "awake_min_ms": 1,
            **settings,
        }
        self.backoff = Backoff()
        for name in ("dfs", "bucket"):
            (folder / name).mkdir()
        self.secret = create_cell_secret(folder / "secret")

    def settings(self) -> KeeperSettings:
        """The settings of a keeper of this cell."""
        folder = self.folder
        cell = CellSettings(
            str(folder / "metadata.sqlite"),
            folder / "dfs",
            str(folder / "bucket"),
            folder / "secret",
        )
        loop = replace(LoopSettings(folder / "keeper"), **self.loop)
        return KeeperSettings(cell, loop, broker=self.broker)

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[Keeper]:
        """Runs a keeper. At the end its brokers go on or stop, as the settings say."""
        settings, metrics = self.settings(), self.metrics
        local = LocalDriver(settings.keeper.folder / "run", LocalOptions(backoff=self.backoff))
        keeper = Keeper(
            CellParts(
                settings=settings,
                secret=self.secret,
                driver=self.wrap(local),
                store=AsyncStore(self.store, metrics),
                clock=(clock := SteadyClock()),
                metrics=metrics,
                samples=SampleWriter(
                    FolderObjects(self.folder / "bucket"),
                    clock=clock,
                    metrics=metrics,
                    interval_ms=settings.keeper.sample_file_interval_ms,
                ),
            )
        )
        await keeper.start()
        running = asyncio.create_task(keeper.run())
        try:
            yield keeper
        finally:
            running.cancel()
            await asyncio.wait({running})
            await keeper.close()

    @property
    def sampled(self) -> int:
        """How many samples were taken or failed, whether or not anything changed."""
        names = ("freshet_keeper_samples_total", "freshet_keeper_sample_failures_total")
        lines = self.metrics.render().splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith(names))

    def want(self, cluster_id: str = CLUSTER, **changes: int | SpecState) -> Spec:
        """Writes a cluster's spec, as the control plane does."""
        given: dict[str, Any] = dict(changes)
        spec = replace(Spec(cluster_id, 1, SpecState.ACTIVE, 1, IDLE_TIMEOUT_MS), **given)
        self.store.put_spec(spec)
        return spec

    def wake(self, cluster_id: str = CLUSTER) -> None:
        """Writes a wake request, as a gateway does."""
        self.store.request_wake(cluster_id, requested_at_ms=SteadyClock().now_ms(), by="test")

    def status(self, cluster_id: str = CLUSTER) -> Status | None:
        """The status that the keeper wrote last."""
        return self.store.peek_status(cluster_id)

    def phases(self, cluster_id: str = CLUSTER) -> list[ClusterPhase]:
        """The phases that the keeper wrote, in order, without repetitions."""
        written = [
            status.phase for written_id, status in self.store.writes if written_id == cluster_id
        ]
        return [p for i, p in enumerate(written) if i == 0 or written[i - 1] is not p]

    async def until(
        self, holds: Callable[[Status | None], bool], cluster_id: str = CLUSTER
    ) -> Status:
        """Waits until something holds of a cluster's status."""
        reached = await asyncio.to_thread(
            self.store.wait, lambda: holds(self.status(cluster_id)), LIMIT_S
        )
        status = self.status(cluster_id)
        assert reached, status
        assert status is not None
        return status

    async def until_phase(self, phase: ClusterPhase, cluster_id: str = CLUSTER) -> Status:
        """Waits until a cluster is in a phase."""
        return await self.until(
            lambda status: status is not None and status.phase is phase, cluster_id
        )

    async def running(
        self, cluster_id: str = CLUSTER, other_than: int | None = None
    ) -> BrokerStatus:
        """Waits until a broker serves whose process is not `other_than`."""
        status = await self.until(
            lambda s: (
                s is not None and s.phase is ClusterPhase.RUNNING and s.brokers[0].pid != other_than
            ),
            cluster_id,
        )
        return status.brokers[0]

    def login(self, bootstrap: str, cluster_id: str = CLUSTER) -> dict[str, str]:
        """The settings of a Kafka client as the service's own user."""
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": SUPER_USER,
            "sasl.password": super_password(self.secret, cluster_id),
        }

    async def client(self, broker: BrokerStatus, cluster_id: str = CLUSTER) -> Linked:
        """A client connection through a gateway."""
        return await connect(broker.link, link_secret(self.secret, cluster_id))


def kill(pid: int | None, number: signal.Signals = signal.SIGKILL) -> None:
    """Sends a broker of this test a signal."""
    assert pid is not None
    os.kill(pid, number)


async def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds whose change is not reported, by looking again and again."""
    async with asyncio.timeout(LIMIT_S):
        while not holds():
            await asyncio.sleep(0.01)

"""Runs the keeper as a process, with a real metadata store."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers.metadata import CellStore, ClusterSpec, ClusterStatus
from brokers.secrets import create_cell_secret
from brokers.settings.writing import settings_toml
from provisioning.cell.drivers.process import identify_process
from provisioning.cell.keeper.settings import KeeperSettings
from tests.peer.processes import bound_command, stop_servers

ROOT = Path(__file__).parents[3]
# A time limit that a test reaches only where something is wrong.
LIMIT_S = 120.0
CLUSTER = "cl_a"


class KeeperServer:
    """`python -m provisioning.cell.keeper`, within a `with` block. Its brokers may outlive it."""

    def __init__(self, settings: KeeperSettings, name: str = "keeper") -> None:
        folder = settings.cell.secret.parent
        create_cell_secret(settings.cell.secret)
        self.config = folder / f"{name}.toml"
        self.config.write_text(settings_toml(settings))
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.metrics = ""

    def start(self, *, wait: bool = True) -> None:
        """Starts the keeper, and waits until it keeps the cell."""
        command = [sys.executable, "-m", "provisioning.cell.keeper", "--config", str(self.config)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                bound_command(command), stdout=subprocess.PIPE, stderr=log, cwd=ROOT
            )
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Waits until it keeps the cell."""
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line.startswith("ready metrics="):
            message = f"the keeper did not start ({self.stop()}):\n{self.log.read_text()}"
            raise AssertionError(message)
        self.metrics = line.split("metrics=")[1].split()[0]

    @property
    def pid(self) -> int:
        """The pid of its process."""
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """Kills the keeper with SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.wait()

    def stop(self) -> int:
        """Stops the keeper with SIGTERM. Returns its exit status."""
        assert self.process is not None
        stop_servers([self.process])
        return self.wait()

    def wait(self) -> int:
        """Waits until the keeper has ended. Returns its exit status."""
        assert self.process is not None
        status = self.process.wait(LIMIT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def __enter__(self) -> Self:
        """Starts the keeper."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kills the keeper, if it still runs."""
        if self.process is not None and self.process.poll() is None:
            self.stop()


class Cell:
    """A cell's metadata store, used as the control plane and a gateway do."""

    def __init__(self, metadata: str) -> None:
        self.store = CellStore(metadata)

    def want(self, cluster_id: str = CLUSTER, **changes: object) -> None:
        """Writes a spec."""
        spec: dict[str, object] = {
            "id": cluster_id,
            "name": "orders",
            "organization_id": "org_a",
            "generation": 1,
            "state": "active",
            "scale": 1,
            "idle_timeout_ms": 600_000,
            "ports": (9092,),
            "host": "orders-1a",
            "connections_max": 100,
            "wakes_per_minute_max": 10,
        }
        self.store.put_spec(ClusterSpec(**{**spec, **changes}))  # type: ignore[arg-type]

    def wake(self, cluster_id: str = CLUSTER) -> None:
        """Writes a wake request of a cluster."""
        now_ms = time.time_ns() // 1_000_000
        self.store.request_wake(cluster_id, requested_at_ms=now_ms, by="test")

    def until(
        self, holds: Callable[[ClusterStatus], bool], cluster_id: str = CLUSTER
    ) -> ClusterStatus:
        """Waits until something holds of a cluster's status."""
        deadline = time.monotonic() + LIMIT_S
        statuses = self.store.statuses()
        revision = statuses.revision
        while True:
            status = self.store.status(cluster_id)
            if status is not None and holds(status):
                return status
            assert time.monotonic() < deadline, status
            changes = self.store.watch("status/", revision, 5.0)
            revision = changes[-1].revision if changes else revision

    def running(self, cluster_id: str = CLUSTER, *, other_than: int | None = None) -> int:
        """Waits until a broker serves that is not `other_than`. Returns its pid."""
        status = self.until(
            lambda s: s.phase == "running" and s.brokers[0].pid != other_than, cluster_id
        )
        pid = status.brokers[0].pid
        assert pid is not None
        return pid


def alive(pid: int) -> bool:
    """Whether a process with this pid runs."""
    return identify_process(pid) is not None

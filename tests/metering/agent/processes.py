"""The agent's command as a process, over a cell on real folders with brokers in this process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers import Broker
from brokers.metadata import CellStore, ClusterSpec
from brokers.settings.writing import settings_toml
from metering.agent.settings import (
    AgentSettings,
    CellSettings,
    LoopSettings,
    UsageSettings,
)
from tests.peer.processes import bound_command, stop_servers

ROOT = Path(__file__).parents[3]
# A limit that no passing test reaches.
LIMIT_S = 60.0
CLUSTER = "cl_a"
CELL = "local"


def make_spec(folder: Path, **changes: object) -> None:
    """Writes the cluster's specification to the cell, as the control plane does."""
    given: dict[str, object] = {
        "id": CLUSTER,
        "name": "a",
        "organization_id": "org_1",
        "generation": 1,
        "state": "active",
        "scale": 1,
        "idle_timeout_ms": 60_000,
        "ports": (),
        "host": "a",
        "connections_max": 100,
        "wakes_per_minute_max": 10,
        **changes,
    }
    CellStore(folder / "metadata.sqlite").put_spec(ClusterSpec(**given))  # type: ignore[arg-type]


def make_broker(folder: Path) -> Broker:
    """A broker of the cluster that leaves indexes quickly."""
    return Broker(
        folder,
        storage={"cluster": CLUSTER},
        lane={"roll_after_ms": 300},
        topics={"offsets_partitions": 1},
    )


class AgentServer:
    """`python -m metering.agent`, which cannot outlive the test."""

    def __init__(self, folder: Path, name: str = "agent", **loop: object) -> None:
        given: dict[str, object] = {"name": name, "period_ms": 100, "rows_max": 2000, **loop}
        settings = AgentSettings(
            cell=CellSettings(
                id=CELL,
                metadata=str(folder / "metadata.sqlite"),
                dfs=folder / "dfs",
                bucket=str(folder / "bucket"),
            ),
            usage=UsageSettings(location=str(folder / "usage"), progress=folder / "progress"),
            agent=LoopSettings(**given),  # type: ignore[arg-type]
        )
        self.config = folder / f"{name}.toml"
        self.config.write_text(settings_toml(settings))
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.metrics = ""

    def start(self) -> None:
        """Starts it, and waits until it is ready."""
        command = [sys.executable, "-m", "metering.agent", "--config", str(self.config)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                bound_command(command), stdout=subprocess.PIPE, stderr=log, cwd=ROOT
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line.startswith("ready metrics="):
            message = f"the agent did not start ({self.stop()}):\n{self.log.read_text()}"
            raise AssertionError(message)
        self.metrics = line.split("metrics=")[1].split()[0]

    def kill(self) -> None:
        """Ends it as `kill -9` does."""
        assert self.process is not None
        self.process.kill()
        self.stop()

    def stop(self) -> int:
        """Ends it by SIGTERM; gives its status."""
        assert self.process is not None
        stop_servers([self.process])
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.returncode

    def page(self, path: str) -> str:
        """A page of it."""
        with urllib.request.urlopen(f"http://{self.metrics}{path}") as answer:
            return str(answer.read().decode())

    def metric(self, name: str) -> float:
        """A metric without labels but the cell; 0 where there is none yet."""
        for line in self.page("/metrics").splitlines():
            if line.startswith(f"{name}{{"):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def __enter__(self) -> Self:
        """Starts it."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends it."""
        self.stop()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Waits for a condition."""
    limit = time.monotonic() + LIMIT_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < limit, what
        pause.wait(0.02)

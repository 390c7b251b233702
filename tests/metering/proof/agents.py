"""Metering agents as processes: several at once over the same clusters, killed and restarted."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from brokers.settings.writing import toml_value
from tests.metering.proof.tenants import CELL, Cell
from tests.metering.proof.usage_folder import UsageFolder
from tests.metering.proof.versions import SUMS
from tests.peer.processes import bound_command, stop_servers

ROOT = Path(__file__).parents[3]
PERIOD_MS = 500
# A limit that no passing test reaches.
LIMIT_SECONDS = 180.0


class Agents:
    """Agents of one cell, which share usage folder and progress, as two by mistake would."""

    def __init__(self, cell: Cell, version: int = SUMS) -> None:
        """`version`: that of the rows that agents make, until it is changed."""
        self.folder = cell.folder
        self.progress = cell.folder / "progress"
        self.kills = 0
        self._versions: defaultdict[str, int] = defaultdict(lambda: version)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Starts one and waits until it works. It is not running yet."""
        config = self.folder / f"{name}.toml"
        config.write_text(self._settings(name))
        command = [sys.executable, "-m", "metering.agent", "--config", str(config)]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                bound_command(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
            )
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        process.stdout.close()
        if not line.startswith("ready "):
            process.wait()
            message = f"{name} did not start:\n{self.log(name)}"
            raise RuntimeError(message)
        self._running[name] = process

    def _settings(self, name: str) -> str:
        sections: dict[str, dict[str, object]] = {
            "cell": {
                "id": CELL,
                "metadata": self.folder / "metadata.sqlite",
                "dfs": self.folder / "dfs",
                "bucket": self.folder / "bucket",
            },
            "usage": {"location": self.folder / "usage", "progress": self.progress},
            "agent": {
                "name": name,
                "period_ms": PERIOD_MS,
                "window_minutes": 1,
                "record_version": self._versions[name],
            },
        }
        lines: list[str] = []
        for section, settings in sections.items():
            lines.append(f"[{section}]")
            lines += [f"{key} = {toml_value(value)}" for key, value in settings.items()]
        return "\n".join(lines) + "\n"

    def kill(self, name: str) -> None:
        """Kills an agent by `kill -9`, and starts it again."""
        process = self._running.pop(name)
        process.kill()
        process.wait()
        self.kills += 1
        self.start(name)

    def change_version(self, name: str, version: int) -> None:
        """Kills an agent, and starts it as a release that makes rows of another version."""
        self._versions[name] = version
        self.kill(name)

    def forget(self, name: str) -> None:
        """Kills an agent, removes its progress, and starts it again."""
        process = self._running.pop(name)
        process.kill()
        process.wait()
        self.kills += 1
        shutil.rmtree(self.progress, ignore_errors=True)
        self.start(name)

    def close(self) -> None:
        """Ends all in order."""
        stop_servers(list(self._running.values()))
        self._running.clear()

    def log(self, name: str) -> str:
        """The last lines of an agent's log."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-4000:]

    def wait_until_all_is_recorded(self, cell: Cell, usage: UsageFolder) -> None:
        """As `wait_until_recorded`, of all tenants; the error has what the agents logged."""
        clusters = [tenant.cluster_id for tenant in cell.tenants]
        try:
            wait_until_recorded(cell.folder / "dfs", clusters, usage)
        except RuntimeError as error:
            logged = "\n".join(self.log(name) for name in self._running)
            message = f"{error}\n{logged}"
            raise RuntimeError(message) from error


def wait_until_recorded(dfs: Path, clusters: Collection[str], usage: UsageFolder) -> None:
    """Waits until manifests say of every lane of clusters that it ended and was read.

    Brokers must have ended. Raises `RuntimeError` with what is still open.
    """
    clock = threading.Event()
    deadline = time.monotonic() + LIMIT_SECONDS
    while still := open_lanes(dfs, clusters, usage):
        if time.monotonic() > deadline:
            message = f"lanes are not recorded to their end: {sorted(still)}"
            raise RuntimeError(message)
        clock.wait(0.1)


def open_lanes(dfs: Path, clusters: Collection[str], usage: UsageFolder) -> set[tuple[str, int]]:
    """(cluster, incarnation) of lanes on storage whose end is in no manifest yet."""
    there = {
        (cluster_id, int(folder.name))
        for cluster_id in clusters
        for folder in (dfs / cluster_id / "lanes").iterdir()
        if folder.name.isdigit()
    }
    ended = {
        (cluster["cluster_id"], lane["incarnation"])
        for file in usage.files()
        for cluster in file.said["clusters"]
        for lane in cluster["lanes"]
        if lane["ended"]
    }
    return there - ended

"""Runs a metering agent as a process outside the pods' network."""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import Self

from brokers.settings.writing import overrides_of
from console.base.common.conf import config
from tests.kubernetes.pods.packages import ROOT
from tests.kubernetes.pods.world import PodCell
from tests.peer.processes import bound_command, stop_servers

PERIOD_MS = 500


class AgentServer:
    """`python -m metering.agent` of a cell, within a `with` block."""

    def __init__(self, cell: PodCell, usage: str) -> None:
        """`usage`: the location of its usage files."""
        sections: dict[str, dict[str, object]] = {
            "cell": {
                "id": config().cell.id,
                "metadata": cell.metadata,
                "dfs": cell.folder / "dfs",
                "bucket": cell.settings().cell.bucket,
            },
            "usage": {"location": usage, "progress": cell.folder / "progress"},
            "agent": {"period_ms": PERIOD_MS, "window_minutes": 1},
        }
        self._config = cell.folder / "agent.toml"
        self._config.write_text("\n".join(overrides_of(sections)))
        self._log = cell.folder / "agent.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Starts the agent, and waits until it works."""
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "metering.agent", "--config", str(self._config)]
            self._process = subprocess.Popen(
                bound_command(command), stdout=subprocess.PIPE, stderr=log, cwd=ROOT
            )
        assert self._process.stdout is not None
        with self._process.stdout as output:
            line = output.readline()
        assert line.startswith(b"ready "), self._log.read_text()[-4000:]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the agent."""
        if self._process is not None:
            stop_servers([self._process])

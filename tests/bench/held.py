"""Processes that are held to half a core, all together: by a cgroup where one can be made.

Where none can be made (no root, or no cgroups that may be written) they get the lowest priority and
nothing holds them; `held_by` says which of the two it was.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from tests.bench.cgroups import make_cgroup, remove_cgroup
from tests.bench.sides import GENERATOR_CPU
from tests.peer.processes import bound_command

PERIOD_US = 100_000
QUOTA_US = PERIOD_US // 2
LOOP = "while True: pass"
READY = "ready\n"
# The shell puts itself into the cgroup before it becomes the command.
ENTER = 'echo $$ > "$0" && exec "$@"'


class HalfCore:
    """Half of a core for the processes that are started in it. `close` after they have ended."""

    def __init__(self) -> None:
        self._cgroup = make_cgroup(
            "held",
            {"cpu.max": f"{QUOTA_US} {PERIOD_US}"},
            {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(QUOTA_US)},
        )

    @property
    def held_by(self) -> str:
        """`cgroup` or `nice`."""
        return "nice" if self._cgroup is None else "cgroup"

    def start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Starts a command beside the load generators, with pipes to talk to it."""
        if self._cgroup is None:
            held = ["nice", "-n", "19", *command]
        else:
            held = ["sh", "-c", ENTER, str(self._cgroup / "cgroup.procs"), *command]
        return subprocess.Popen(
            bound_command(held, GENERATOR_CPU),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @contextlib.contextmanager
    def burning(self) -> Iterator[dict[str, float]]:
        """A loop that takes all of it, and counts nothing: the control run of an attack."""
        with self._running([sys.executable, "-c", LOOP]):
            yield {}

    @contextlib.contextmanager
    def attacking(self, module: str, *arguments: object) -> Iterator[dict[str, int]]:
        """A program of attackers at work, which prints `ready` and ends with its input.

        What it counted, a line of JSON, is in the dict once it has ended. Raises `RuntimeError`
        where it does not begin.
        """
        counted: dict[str, int] = {}
        with self._running([sys.executable, "-m", module, *map(str, arguments)]) as attackers:
            assert attackers.stdout is not None
            if attackers.stdout.readline() != READY:
                message = f"the attackers did not begin: exit status {attackers.wait()}"
                raise RuntimeError(message)
            yield counted
            text, _ = attackers.communicate()
            counted |= json.loads(text)

    @contextlib.contextmanager
    def _running(self, command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
        process = self.start(command)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def close(self) -> None:
        """Removes the cgroup."""
        if self._cgroup is not None:
            remove_cgroup(self._cgroup)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

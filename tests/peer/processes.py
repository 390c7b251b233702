"""Child processes that cannot outlive us: pinned to CPUs on request, ended by their id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

# How long a server may take to end by itself before it is killed.
STOP_SECONDS = 15.0


def bound_command(
    command: Sequence[str | os.PathLike[str]], cpus: str | None = None
) -> list[str | os.PathLike[str]]:
    """Wraps a command so that the kernel kills it with its parent, on these CPUs only.

    `cpus` is a list as `taskset -c` takes it, such as "1" or "0-2".
    """
    bound: list[str | os.PathLike[str]] = ["setpriv", "--pdeathsig", "KILL", "--", *command]
    return ["taskset", "--cpu-list", cpus, *bound] if cpus is not None else bound


def spawn_server(
    command: Sequence[str | os.PathLike[str]],
    log: Path,
    *,
    cpus: str | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a server with its output going to a file. It has the process id of the command."""
    with log.open("wb") as output:
        return subprocess.Popen(
            bound_command(command, cpus),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=None if environment is None else {**os.environ, **environment},
        )


def stop_servers(servers: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends servers together: asks all to end, then kills the rest. Some may have ended before."""
    for server in servers:
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
    for server in servers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(STOP_SECONDS)
        if server.poll() is None:
            server.kill()
            server.wait()

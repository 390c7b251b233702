"""Records the children of a run, and ends those that a killed run left behind.

A process is ended only if it has the recorded number *and* start time, or if it belongs to the
session of a recorded one and carries the run's mark in its environment: a worker's pool outlives a
killed worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

from console.programs.supervisor.processes import (
    Identity,
    boot_id,
    identify_process,
    is_running,
    members_of,
)

MARK = "FRESHET_RUN"
END_TIMEOUT_S = 10.0
_POLL_S = 0.02


@dataclass(frozen=True)
class Recorded:
    """A child as `run.json` holds it.

    `started`: see `Identity`. `members`: whether the rest of its session is ended with it.
    """

    name: str
    pid: int
    started: int
    stop_signal: int
    members: bool


class Record:
    """The file `<home>/run.json` with the children of this run, rewritten when a child starts."""

    def __init__(self, path: Path, run: str) -> None:
        self._path = path
        self._run = run
        self._children: dict[str, Recorded] = {}

    def add(self, name: str, pid: int, stop_signal: int, *, members: bool) -> None:
        """Records a child that just started, in place of an earlier one of the same name."""
        identity = identify_process(pid)
        if identity is None:  # it ended already
            return
        self._children[name] = Recorded(name, pid, identity.started, stop_signal, members)
        self._write()

    def clear(self) -> None:
        """Removes the file, once every child has stopped."""
        self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        content = {
            "boot": boot_id(),
            "run": self._run,
            "children": [asdict(child) for child in self._children.values()],
        }
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text(json.dumps(content, indent=1))
        temporary.replace(self._path)


def _read_record(path: Path) -> tuple[str, list[Recorded]]:
    """Returns the run's mark and its children; neither where there is no record of this boot."""
    try:
        content = json.loads(path.read_text())
        if content["boot"] != boot_id():
            return "", []
        return str(content["run"]), [Recorded(**child) for child in content["children"]]
    except FileNotFoundError:
        return "", []
    except (ValueError, KeyError, TypeError):  # cut short by a full disk: it names nobody
        return "", []


async def end_leftovers(path: Path, timeout_s: float = END_TIMEOUT_S) -> list[str]:
    """Ends the processes that the last run left behind; returns the names of those that still ran.

    All are asked to end at once; those that still run after `timeout_s` are killed.
    """
    run, children = _read_record(path)
    processes: dict[Identity, int] = {}
    names = []
    for child in children:
        leader = Identity(child.pid, child.started)
        mine = [leader] if is_running(leader) else []
        if child.members:
            mine += [m for m in members_of(child.pid, f"{MARK}={run}") if m != leader]
        if mine:
            names.append(child.name)
        processes |= dict.fromkeys(mine, child.stop_signal)
    for identity, stop_signal in processes.items():
        _send_signal(identity, stop_signal)
    remaining = await _wait_for_end(list(processes), timeout_s)
    for identity in remaining:
        _send_signal(identity, signal.SIGKILL)
    await _wait_for_end(remaining, timeout_s)
    path.unlink(missing_ok=True)
    return names


def _send_signal(identity: Identity, number: int) -> None:
    if is_running(identity):
        with contextlib.suppress(ProcessLookupError):
            os.kill(identity.pid, number)


async def _wait_for_end(identities: list[Identity], timeout_s: float) -> list[Identity]:
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        running = [identity for identity in identities if is_running(identity)]
        if not running or asyncio.get_running_loop().time() > deadline:
            return running
        await asyncio.sleep(_POLL_S)

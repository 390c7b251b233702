"""Makes sure that nothing of the service runs on this home, nor starts meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from console.programs.backup.errors import BackupError
from console.programs.backup.programs import Say
from console.programs.supervisor.errors import StartError
from console.programs.supervisor.leftovers import end_leftovers
from console.programs.supervisor.lock import HomeLock
from console.settings.config import Config
from provisioning.cell.drivers.files import SlotFiles, slots_in
from provisioning.cell.drivers.process import Identity, find_processes, identify_process

# How long a broker has to stop before it is killed. A killed broker loses no acknowledged record.
BROKERS_STOP_S = 30.0
POLL_S = 0.05


class StillRuns(BackupError):
    """The service runs on this home, so that this cannot be done now."""


@contextlib.contextmanager
def hold_standstill(config: Config, say: Say) -> Iterator[None]:
    """Holds the home's lock, after ending what a killed run left: children and brokers.

    Raises `StillRuns` where the service runs.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(HomeLock(config.home / "up.lock", "for a backup or a restore"))
        except StartError as error:
            raise StillRuns(f"{error.sentence.partition(' Set ')[0]} Stop it first.") from error
        ended = asyncio.run(end_leftovers(config.home / "run.json"))
        ended += _end_brokers(config.cell.keeper / "run")
        if ended:
            say(f"The last run was killed; ended what it left: {', '.join(ended)}.")
        yield


def _end_brokers(run: Path) -> list[str]:
    """Ends the brokers of a killed keeper; returns their names.

    They outlive their keeper, and would go on with metadata that the restore replaces.
    """
    files = {
        str(SlotFiles.of(run, cluster_id, slot).settings): f"broker {cluster_id}/{slot}"
        for cluster_id, slot in slots_in(run)
    }
    brokers = find_processes("--config", files)
    for number, limit_s in ((signal.SIGTERM, BROKERS_STOP_S), (signal.SIGKILL, BROKERS_STOP_S)):
        running = [
            identity for identity in brokers.values() if identify_process(identity.pid) == identity
        ]
        for identity in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(identity.pid, number)
        _wait_for_end(running, limit_s)
    return sorted(files[path] for path in brokers)


def _wait_for_end(identities: list[Identity], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while any(identify_process(identity.pid) == identity for identity in identities):
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_S)

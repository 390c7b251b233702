"""Makes sure that nothing of the service runs, and that nothing starts meanwhile."""

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
from provisioning.cell.drivers.process import Identity, find, identify

# From asking a broker to killing it; a killed one loses nothing.
BROKERS_STOP_S = 30.0
POLL_S = 0.05


class StillRuns(BackupError):
    """The service runs on this home."""


@contextlib.contextmanager
def standstill(config: Config, say: Say) -> Iterator[None]:
    """Holds the home's lock, and ends what a killed run left: children, and a keeper's brokers.

    Raises `StillRuns`.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(HomeLock(config.home / "up.lock", "for a backup or a restore"))
        except StartError as error:
            raise StillRuns(f"{error.sentence.partition(' Set ')[0]} Stop it first.") from error
        left = asyncio.run(end_leftovers(config.home / "run.json"))
        left += _end_brokers(config.cell.keeper / "run")
        if left:
            say(f"The last run was killed; ended what it left: {', '.join(left)}.")
        yield


def _end_brokers(run: Path) -> list[str]:
    """Brokers outlive a keeper that is killed, and would go on with the metadata that goes."""
    files = {
        str(SlotFiles.of(run, cluster_id, slot).settings): f"broker {cluster_id}/{slot}"
        for cluster_id, slot in slots_in(run)
    }
    found = find("--config", files)
    for number, limit_s in ((signal.SIGTERM, BROKERS_STOP_S), (signal.SIGKILL, BROKERS_STOP_S)):
        running = [each for each in found.values() if identify(each.pid) == each]
        for identity in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(identity.pid, number)
        _wait_for_end(running, limit_s)
    return sorted(files[path] for path in found)


def _wait_for_end(identities: list[Identity], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while any(identify(identity.pid) == identity for identity in identities):
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_S)

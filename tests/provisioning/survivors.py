"""Ends brokers that a failed test left behind: they outlive their keeper on purpose."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from provisioning.cell.drivers.files import SlotFiles, slots_in
from provisioning.cell.drivers.process import find


def kill_survivors(run: Path) -> None:
    """Kills every process that was started with a settings file below a driver's folder."""
    files = [SlotFiles.of(run, cluster_id, slot) for cluster_id, slot in slots_in(run)]
    for identity in find("--config", {str(file.settings) for file in files}).values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(identity.pid, signal.SIGKILL)

"""Kills brokers that a failed test left behind, because brokers outlive their keeper on purpose."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from provisioning.cell.drivers.files import SlotFiles, slots_in
from provisioning.cell.drivers.process import find_processes


def kill_survivors(run: Path) -> None:
    """Kills all processes whose settings file is below a local driver's folder."""
    files = [SlotFiles.of(run, cluster_id, slot) for cluster_id, slot in slots_in(run)]
    for identity in find_processes("--config", {str(file.settings) for file in files}).values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(identity.pid, signal.SIGKILL)

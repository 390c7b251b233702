"""Is there room to start?"""

from __future__ import annotations

import os
from pathlib import Path

from console.programs.supervisor.errors import StartError

MIB = 1024 * 1024
FIRST_START_BYTES = 256 * MIB  # a new PostgreSQL takes 60, the rest is what a day brings
LATER_START_BYTES = 64 * MIB


def check_space(home: Path, *, first: bool) -> None:
    """Raises StartError when the disk has less free than a start needs."""
    facts = os.statvfs(home)
    free = facts.f_bavail * facts.f_frsize
    needed = FIRST_START_BYTES if first else LATER_START_BYTES
    if free < needed:
        raise StartError(
            f"The disk that holds {home} has {free // MIB} MiB free and a start needs"
            f" {needed // MIB}: make room, or set FRESHET_HOME to a folder on another disk."
        )

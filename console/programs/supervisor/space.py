"""Checks that the disk has enough room for a start."""

from __future__ import annotations

import os
from pathlib import Path

from console.programs.supervisor.errors import StartError

MIB = 1024 * 1024
FIRST_START_BYTES = 256 * MIB  # a new PostgreSQL takes 60 MiB, the rest is for data
LATER_START_BYTES = 64 * MIB


def check_space(home: Path, *, first: bool) -> None:
    """Raises `StartError` where the disk has less free space than a start needs.

    `first`: whether this is the first start of the home, which makes the databases.
    """
    facts = os.statvfs(home)
    free = facts.f_bavail * facts.f_frsize
    needed = FIRST_START_BYTES if first else LATER_START_BYTES
    if free < needed:
        raise StartError(
            f"The disk that holds {home} has {free // MIB} MiB free, and a start needs"
            f" {needed // MIB} MiB: make room, or set FRESHET_HOME to a folder on another disk."
        )

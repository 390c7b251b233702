"""Checks whether a machine can mount a GlusterFS of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

# The brick's program and the mount's. Debian has them in glusterfs-server and glusterfs-client.
PROGRAMS = ("glusterfsd", "glusterfs")
FUSE = Path("/dev/fuse")


def missing() -> list[str]:
    """What this machine lacks, as texts for people; empty where it lacks nothing."""
    lacks = [f"the program {name}" for name in PROGRAMS if shutil.which(name) is None]
    if os.geteuid() != 0:
        lacks.append("root")
    if not os.access(FUSE, os.R_OK | os.W_OK):
        lacks.append(f"{FUSE} that may be opened")
    return lacks

"""Runs a command over two mounts of a GlusterFS: `python -m tests.dfs COMMAND ARGUMENT...`.

The engine's own tests find the mounts in the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.dfs.volume import GlusterVolume

MOUNTS_VARIABLE = "FRESHET_TEST_MOUNTS"


def main(command: list[str]) -> int:
    """Returns the command's status."""
    with (
        tempfile.TemporaryDirectory(prefix="freshet-dfs-") as folder,
        GlusterVolume(Path(folder)) as volume,
    ):
        mounts = os.pathsep.join(map(str, volume.mounts))
        environment = {**os.environ, MOUNTS_VARIABLE: mounts}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Names of clusters for programs under test: a hosts file of their own, in a mount namespace."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.peer.processes import bound_command

# In a namespace of its own nobody else sees the mount, and it goes with the process.
IN_NAMESPACE = 'mount --bind "$0" /etc/hosts && exec "$@"'


def run_with_names(
    folder: Path, names: Sequence[str], command: Sequence[str], *, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Runs a program for which these names resolve to this machine; returns its output."""
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
    inside = ["unshare", "--mount", "sh", "-c", IN_NAMESPACE, str(hosts), *command]
    return subprocess.run(
        bound_command(inside), input=given, capture_output=True, check=False, timeout=120
    )

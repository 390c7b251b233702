"""Topics of a metadata store, in a process of its own: `python -m tests.backup.topics PATH [NAME]`.

Two libraries of SQLite in one process take each other's locks away when one closes the file, so
tests that copy the file with the one write it with the other elsewhere.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from brokers.metadata import CellStore

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120


def topics(path: Path, *created: str) -> set[str]:
    """Makes the store and these topics in it, where they are missing; gives all names."""
    command = [sys.executable, "-m", "tests.backup.topics", str(path), *created]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    return set(done.stdout.split())


def main(path: str, *created: str) -> None:
    """Prints the names, one a line."""
    store = CellStore(path).cluster("local")
    if created:
        store.create()
    for name in created:
        store.create_topic(name)
    for topic in store.topics():
        sys.stdout.write(f"{topic.name}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

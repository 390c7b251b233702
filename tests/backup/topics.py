"""Topics of a metadata store, in a process of its own: `python -m tests.backup.topics PATH [NAME]`.

Two SQLite libraries in one process release each other's locks when one of them closes the file. So
a test that copies the file with Python's library writes it with the broker's in another process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from brokers.metadata import CellStore

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120


def create_topics(path: Path, *created: str) -> set[str]:
    """Creates the store and the topics `created` where missing; returns all names of topics."""
    command = [sys.executable, "-m", "tests.backup.topics", str(path), *created]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    return set(done.stdout.split())


def print_topics(path: str, *created: str) -> None:
    """Creates topics in this process and prints the names of all topics, one on each line."""
    store = CellStore(path).cluster("local")
    if created:
        store.create()
    for name in created:
        store.create_topic(name)
    for topic in store.topics():
        sys.stdout.write(f"{topic.name}\n")


if __name__ == "__main__":
    print_topics(*sys.argv[1:])

"""Writes records of the metadata store as an earlier release did, which put samples there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from brokers.etcd import Etcd
from brokers.locations import metadata_location
from brokers.metadata import CellStore

# In a process of its own: two libraries of SQLite in one process release each other's locks.
WRITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=60)
with connection:
    connection.execute("UPDATE meta SET revision = revision + 1")
    row = [sys.argv[2], sys.argv[3].encode()]
    connection.execute("INSERT OR REPLACE INTO entry SELECT ?, ?, revision FROM meta", row)
"""


def put_earlier_sample(
    location: str, name: str, taken_at_ms: int, content: Mapping[str, object]
) -> None:
    """Writes `sample/<name>` with this content."""
    CellStore(location).statuses()  # makes the tables, where there are none
    key = f"cell/sample/{name}"
    value = json.dumps({"v": 1, "taken_at_ms": taken_at_ms, **content})
    place = metadata_location(location)
    if isinstance(place, Path):
        subprocess.run([sys.executable, "-c", WRITE, str(place), key, value], check=True)
    else:
        Etcd(place).write({key: value.encode()})

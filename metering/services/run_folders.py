"""Folders of runs, in the store that the setting `usage.rollups` names: what the control plane
gives a Spark job, and what the job leaves."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from console.base.common.conf import config
from metering.events.store import RemovingStore
from metering.services.waiting import waited_for
from metering.stores import hadoop_root, open_usage_store

MANIFEST, LOG, OUTPUT = "run.json", "log.json", "output"
# The Parquet files of hours.
HOURS = f"{OUTPUT}/hours"
# What waits for it is named so.
STORE = "the store of roll-ups"


_KEY = re.compile(r"day=(?P<day>\d{4}-\d{2}-\d{2})/run_id=(?P<run_id>[^/]+)/.+")


@dataclass(frozen=True, slots=True, order=True)
class RunFolder:
    """The folder of one run; each run has its own, and nothing in it is written twice."""

    day: date
    run_id: str

    @property
    def key(self) -> str:
        """Its key in the store."""
        return f"day={self.day}/run_id={self.run_id}"

    def path(self, name: str) -> str:
        """The path or URI of what has this name in the folder, for Spark."""
        return f"{hadoop_root(config().usage.rollups)}/{self.key}/{name}"

    def write(self, name: str, data: bytes) -> None:
        """Writes a new file. Raises `FileExistsError`, and `OSError` without the store."""
        if not run_store().put_new(f"{self.key}/{name}", data):
            message = f"{self.path(name)} exists"
            raise FileExistsError(message)

    def read(self, name: str) -> bytes:
        """A file's content. Raises `FileNotFoundError`, and `OSError` without the store."""
        return run_store().get(f"{self.key}/{name}")

    @contextmanager
    def copied_output(self) -> Iterator[Path]:
        """A folder of this machine with what the job wrote, for as long as the context lasts.

        So a transaction that reads it waits for no shared storage. Raises `OSError`.
        """
        store, prefix = run_store(), f"{self.key}/{OUTPUT}/"
        with tempfile.TemporaryDirectory(prefix="freshet-run-") as place:
            for key in store.list(prefix):
                file = Path(place, key.removeprefix(prefix))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(store.get(key))
            yield Path(place)


def parse_folder(key: str) -> RunFolder | None:
    """The folder that an object lies in; None where it is no run's."""
    match = _KEY.fullmatch(key)
    return RunFolder(date.fromisoformat(match["day"]), match["run_id"]) if match else None


def run_store() -> RemovingStore:
    """The store of all runs' folders."""
    return waited_for(open_usage_store(config().usage.rollups), STORE)

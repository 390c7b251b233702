"""One keeper per cell at a time: a lock on a file of the machine, which ends with its holder."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# Interval at which a standby tries to take the lock.
POLL_S = 0.2


@dataclass(frozen=True)
class Holder:
    """The keeper that holds the lock, as it recorded itself.

    `since`: ISO 8601; empty: not known.
    """

    pid: int | None
    since: str
    name: str = ""

    @property
    def description(self) -> str:
        """The holder as a text for people."""
        if self.pid is None and not self.name:
            return "another keeper"
        who = self.name or f"pid {self.pid}"
        return f"another keeper ({who}, since {self.since})"


class KeeperLock:
    """A lock that is held from `try_acquire` until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def try_acquire(self, now: str) -> Holder | None:
        """Takes the lock, and records this process as its holder. Returns None.

        Where another keeper has the lock, its holder is returned. Raises `OSError` where the file
        cannot be opened. `now` is recorded as the time since when it is held.
        """
        # Close-on-exec: brokers must not inherit the file, so that the lock ends with this process.
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        file = os.fdopen(handle, "r+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with file:
                return _read_holder(file.read())
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "since": now}))
        file.flush()
        self._file = file
        return None

    async def acquire(self, now: str) -> None:
        """Waits until the lock is free, and takes it. Raises as `try_acquire`."""
        while self.try_acquire(now) is not None:
            await asyncio.sleep(POLL_S)

    def release(self) -> None:
        """Releases the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _read_holder(text: str) -> Holder:
    try:
        written = json.loads(text)
        return Holder(int(written["pid"]), str(written["since"]))
    except (ValueError, KeyError, TypeError):
        return Holder(None, "")

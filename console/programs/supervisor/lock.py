"""Allows one run on a home at a time, by a lock on `<home>/up.lock`, which names its holder."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType

from console.programs.supervisor.errors import StartError


class HomeLock:
    """Holds the lock while it is open. The kernel releases it when the process ends in any way.

    Opening raises `StartError` where another process holds it.
    """

    def __init__(self, path: Path, address: str) -> None:
        self._path = path
        self._address = address
        self._descriptor: int | None = None

    def __enter__(self) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StartError(self._held_sentence()) from None
        content = json.dumps({"pid": os.getpid(), "address": self._address})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content.encode(), 0)
        self._descriptor = descriptor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _held_sentence(self) -> str:
        home = self._path.parent
        try:
            holder = json.loads(self._path.read_text())
            where = f"at {holder['address']} (pid {holder['pid']})"
        except (OSError, ValueError, KeyError):  # it is only just starting
            where = "(it is starting)"
        return f"Freshet already runs on {home} {where}. Set FRESHET_HOME to start another."

"""The log of a local broker: passes on its warnings, and rotates it by size.

The broker itself appends to the file, so it neither waits for a keeper nor loses lines while no
keeper runs.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Lines of these levels are not passed on. The engine writes them so:
# `2026-01-31T12:00:00.000000Z  INFO freshet_storage::lane: ...`.
UNREMARKABLE = re.compile(rb"\d{4}-\d\d-\d\dT\S+ +(?:INFO|DEBUG|TRACE) ")
READ_BYTES = 64 * 1024
# At most so many lines are passed on at a time; further ones are only in the file.
LINES_MAX = 50
LINE_CHARACTERS_MAX = 2000


@dataclass(frozen=True)
class LogLimits:
    """A log is rotated at `bytes_max`; `files` older ones are kept beside it."""

    bytes_max: int = 16 * 1024 * 1024
    files: int = 3


class LogTail:
    """Follows one log. Calls `say` with each line of level WARN or ERROR, or of another format."""

    def __init__(self, path: Path, limits: LogLimits, say: Callable[[str], None]) -> None:
        self._path = path
        self._limits = limits
        self._say = say
        self._offset = _size_of(path)
        self._rest = b""
        self.last_line = ""

    def look(self) -> None:
        """Passes on new lines. It reads a bounded piece at a time and never waits."""
        shown = hidden = 0
        while piece := self._read_new_bytes():
            *lines, self._rest = (self._rest + piece).split(b"\n")
            if len(self._rest) > READ_BYTES:
                lines, self._rest = [*lines, self._rest], b""
            for line in filter(None, lines):
                text = line.decode(errors="replace")[:LINE_CHARACTERS_MAX]
                self.last_line = text
                if UNREMARKABLE.match(line):
                    continue
                if shown < LINES_MAX:
                    self._say(text)
                    shown += 1
                else:
                    hidden += 1
        if hidden:
            self._say(f"and {hidden} more lines, see {self._path}")

    def rotate(self, *, in_use: bool) -> None:
        """Rotates the log where it has reached its size limit. Raises `OSError`.

        A log that is in use is copied and then emptied, because the broker keeps the file open.
        Lines that are written between the two, within some microseconds, are lost.
        """
        if _size_of(self._path) < self._limits.bytes_max:
            return
        for number in range(self._limits.files, 1, -1):
            older = self._older_log(number - 1)
            if older.exists():
                older.replace(self._older_log(number))
        first = self._older_log(1)
        if in_use:
            with self._path.open("rb") as source, first.open("wb") as target:
                os.fchmod(target.fileno(), 0o600)
                shutil.copyfileobj(source, target, 1024 * 1024)
            os.truncate(self._path, 0)
        else:
            self._path.replace(first)
        self._offset = 0

    def _older_log(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _read_new_bytes(self) -> bytes:
        size = _size_of(self._path)
        if size < self._offset:  # somebody emptied the file
            self._offset = 0
        if size == self._offset:
            return b""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                piece = file.read(min(READ_BYTES, size - self._offset))
        except OSError:
            return b""
        self._offset += len(piece)
        return piece


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

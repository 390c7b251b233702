"""The log of a local broker: followed for what a person should see, and rotated by size.

The broker itself appends to the file, so it neither waits for a keeper nor loses what it says while
there is none.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# As the engine writes them: `2026-01-31T12:00:00.000000Z  INFO freshet_storage::lane: ...`.
UNREMARKABLE = re.compile(rb"\d{4}-\d\d-\d\dT\S+ +(?:INFO|DEBUG|TRACE) ")
READ_BYTES = 64 * 1024
# In one look; a storm of warnings is in the file.
LINES_MAX = 50
LINE_CHARACTERS_MAX = 2000


@dataclass(frozen=True)
class LogLimits:
    """A log is rotated at `bytes_max`; `files` older ones are kept beside it."""

    bytes_max: int = 16 * 1024 * 1024
    files: int = 3


class LogTail:
    """Follows one log. `say` gets each line from the level of a warning on."""

    def __init__(self, path: Path, limits: LogLimits, say: Callable[[str], None]) -> None:
        self._path = path
        self._limits = limits
        self._say = say
        self._offset = _size(path)
        self._rest = b""
        self.last_line = ""

    def look(self) -> None:
        """Passes on what is new. Reads a bounded piece at a time and never waits."""
        shown = hidden = 0
        while piece := self._read():
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
            self._say(f"and {hidden} lines more, in {self._path}")

    def rotate(self, *, in_use: bool) -> None:
        """Starts a new file where this one is full. Raises `OSError`.

        A log that is in use is copied and emptied: what is written between the two, some
        microseconds, is lost.
        """
        if _size(self._path) < self._limits.bytes_max:
            return
        for number in range(self._limits.files, 1, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        first = self._numbered(1)
        if in_use:
            with self._path.open("rb") as source, first.open("wb") as target:
                os.fchmod(target.fileno(), 0o600)
                shutil.copyfileobj(source, target, 1024 * 1024)
            os.truncate(self._path, 0)
        else:
            self._path.replace(first)
        self._offset = 0

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _read(self) -> bytes:
        size = _size(self._path)
        if size < self._offset:  # emptied by hand
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


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

"""The lines of children: shown on the terminal with a prefix, and written to a log file each."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

LINES_KEPT = 12
LOG_BYTES_MAX = 8 * 1024 * 1024

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95)
_BOLD = 1


class LogFile:
    """A log in two files of at most `LOG_BYTES_MAX` bytes each; the older one has the ending `.1`.

    A log that cannot be written, as on a full disk, never stops the service: lines are dropped
    until there is room again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def write(self, line: str) -> None:
        """Appends a line."""
        try:
            if self._file is None:
                self._file = self._path.open("a", encoding="utf-8", errors="replace")
            self._file.write(line + "\n")
            self._file.flush()
            if self._file.tell() > LOG_BYTES_MAX:
                self._roll_over()
        except OSError:
            self.close()

    def _roll_over(self) -> None:
        self.close()
        self._path.replace(self._path.with_name(self._path.name + ".1"))

    def close(self) -> None:
        """Closes the file; the next line opens it again."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # what a full disk left in the buffer
                self._file.close()
            self._file = None


class Output:
    """Writes the lines of children to one stream and to `<folder>/<name>.log`.

    `names`: all children, for the width and the colours of the prefixes.
    """

    def __init__(self, stream: TextIO, folder: Path, names: Sequence[str], *, colour: bool) -> None:
        self._stream: TextIO | None = stream
        self._folder = folder
        self._width = max(map(len, names), default=0)
        self._colour = colour
        self._colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
        self._files: dict[str, LogFile] = {}
        self._tails: dict[str, deque[str]] = {}

    def say(self, name: str, line: str, *, shown: bool = True) -> None:
        """Adds a line to the log and the tail of the child `name`, and shows it where `shown`."""
        self._tails.setdefault(name, deque(maxlen=LINES_KEPT)).append(line)
        if name not in self._files:
            self._files[name] = LogFile(self._folder / f"{name}.log")
        self._files[name].write(line)
        if shown:
            self._show(f"{self._prefix(name)} {line}")

    def show(self, text: str) -> None:
        """Shows a text of several lines without a prefix; it goes into no log."""
        self._show(text)

    def tail(self, name: str) -> list[str]:
        """Returns the last lines of a child, oldest first."""
        return list(self._tails.get(name, ()))

    def close(self) -> None:
        """Closes the log files."""
        for file in self._files.values():
            file.close()

    def _prefix(self, name: str) -> str:
        prefix = f"{name:<{self._width}} |"
        if not self._colour:
            return prefix
        return f"\x1b[{self._colours.get(name, _BOLD)}m{prefix}\x1b[0m"

    def _show(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except OSError as error:
            # A reader that went away (`make up | head`) does not come back. Other errors, as of a
            # full disk, may pass, and the next line is tried again.
            if error.errno == errno.EPIPE:
                _point_nowhere(self._stream.fileno())
                self._stream = None


def _point_nowhere(descriptor: int) -> None:
    """Points a stream to the null device, so that what is in its buffer does not fail at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)

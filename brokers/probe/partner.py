"""Two sides of a folder: this process, and another one that carries out operations for it.

The other one is `python -m brokers.probe.partner FOLDER`. Each line of its input is one operation,
each line of its output the result of one, both in JSON.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self

from brokers import _core
from brokers.probe import operations as do
from brokers.probe.operations import PAGE, Held

# A file system that takes longer for one operation is not fit for a lane.
TIMEOUT_S = 30


class SilentError(Exception):
    """The other side does not answer."""


class Doer(Protocol):
    """One side of a folder."""

    def do(self, operation: str, *arguments: str) -> Any:  # noqa: ANN401 (JSON)
        """Carries an operation out on that side. Raises `OSError` as the file system does."""


def page(text: str) -> bytes:
    """A page with this text."""
    return text.encode().ljust(PAGE, b".")


class Side:
    """This process's side. Names are those of files in one folder; texts fill a page."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, Held] = {}
        self._operations: dict[str, Callable[..., object]] = {
            "exists": lambda name: (folder / name).exists(),
            "list": lambda: do.list_names(folder),
            "create": lambda name, text: do.create_file(folder / name, page(text)),
            "publish": lambda name, text: do.publish_file(folder / name, page(text)),
            "make_folder": self._make_folder,
            "read": lambda name: do.read_whole(folder / name).decode().rstrip("."),
            "rename": self._rename,
            "remove": lambda name: (folder / name).unlink(),
            "hold": self._hold,
            "write": lambda name, at, text: self._held[name].write(int(at) * PAGE, page(text)),
            "look": lambda name, at: self._held[name].read(int(at) * PAGE).decode().rstrip("."),
        }

    def _make_folder(self, name: str) -> None:
        (self._folder / name).mkdir()
        do.sync_folder(self._folder)

    def _rename(self, old: str, new: str) -> None:
        (self._folder / old).rename(self._folder / new)
        do.sync_folder(self._folder)

    def _hold(self, name: str) -> None:
        self._held[name] = Held(self._folder / name, is_remote=_core.is_remote)

    def do(self, operation: str, *arguments: str) -> Any:  # noqa: ANN401 (JSON)
        """Carries an operation out and returns its result."""
        return self._operations[operation](*arguments)

    def close(self) -> None:
        """Closes what is held open."""
        for held in self._held.values():
            held.close()


class Partner:
    """The other process's side."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "brokers.probe.partner", str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._asked, self._answered = self._process.stdin, self._process.stdout

    def do(self, operation: str, *arguments: str) -> Any:  # noqa: ANN401 (JSON)
        """Has the other process carry an operation out; returns the result."""
        self.begin(operation, *arguments)
        return self.finish()

    def begin(self, operation: str, *arguments: str) -> None:
        """Sends an operation to the other process."""
        if self._asked is not None:
            self._asked.write(json.dumps([operation, *arguments]).encode() + b"\n")
            self._asked.flush()

    def finish(self) -> Any:  # noqa: ANN401 (JSON)
        """Waits for the result of the operation. Raises `SilentError` where none comes in time."""
        line = b""
        if self._answered is not None:
            ready, _, _ = select.select([self._answered], [], [], TIMEOUT_S)
            line = self._answered.readline() if ready else b""
        if not line:
            message = f"the other process did not answer within {TIMEOUT_S} s"
            raise SilentError(message)
        answer = json.loads(line)
        if "errno" in answer:
            raise OSError(answer["errno"], answer["text"])
        return answer["value"]

    def __enter__(self) -> Self:
        """It runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process. One that hangs in the file system cannot be ended, and is left."""
        try:
            self._process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()


def main(folder: str) -> None:
    """Carries out the operations of standard input until it ends."""
    side = Side(Path(folder))
    for line in sys.stdin.buffer:
        operation, *arguments = json.loads(line)
        try:
            answer: dict[str, object] = {"value": side.do(operation, *arguments)}
        except OSError as error:
            answer = {"errno": error.errno, "text": error.strerror or str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    side.close()


if __name__ == "__main__":
    main(sys.argv[1])

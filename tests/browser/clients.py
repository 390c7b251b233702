"""Snippets of the console, pasted into real processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

TIMEOUT_S = 60


def run_in_shell(command: str) -> subprocess.CompletedProcess[str]:
    """Pastes a command into a shell and waits for its end."""
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


class Program:
    """A program that prints until somebody presses Ctrl-C."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._said:
                self.lines.append(line.rstrip())
                self._said.notify_all()
        with self._said:
            self._said.notify_all()

    def _signal(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def wait_for_line(self, pattern: str) -> str:
        """Returns the first line that matches; fails if the program ends or time passes first."""
        expression = re.compile(pattern)

        def found() -> str | None:
            return next((line for line in self.lines if expression.search(line)), None)

        with self._said:
            self._said.wait_for(lambda: found() or not self._reader.is_alive(), TIMEOUT_S)
        line = found()
        assert line is not None, f"no line like {pattern!r}:\n" + "\n".join(self.lines)
        return line

    def interrupt(self) -> None:
        """Interrupts it as Ctrl-C does, and waits for its end."""
        self._signal(signal.SIGINT)
        try:
            self.process.wait(TIMEOUT_S)
        finally:
            self._signal(signal.SIGKILL)
            self.process.wait()
        self._reader.join(TIMEOUT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def python_program(code: str, folder: Path) -> Iterator[Program]:
    """Runs a Python file with this code until the block ends."""
    path = folder / "freshet.py"
    path.write_text(code)
    with _running([sys.executable, str(path)]) as program:
        yield program


@contextlib.contextmanager
def shell_program(command: str) -> Iterator[Program]:
    """Pastes a command that does not end into a shell; it runs until the block ends."""
    with _running(["bash", "-c", command]) as program:
        yield program


@contextlib.contextmanager
def _running(command: Sequence[str]) -> Iterator[Program]:
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # So that Ctrl-C reaches all programs of a pipe.
        start_new_session=True,
    )
    program = Program(process)
    try:
        yield program
    finally:
        program.interrupt()

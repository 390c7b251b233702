"""The C programs of this folder: compiled once per version, and run."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.bench.sides import GENERATOR_CPU
from tests.peer.jars import ROOT
from tests.peer.processes import bound_command

HERE = Path(__file__).parent
BUILD = ROOT / ".bench" / "build"
RUN_SECONDS_MAX = 3600.0
READY = "ready\n"
BUILDING = threading.Lock()


def build_program(name: str) -> Path:
    """Compiles `<name>.c` unless this version of it is compiled already."""
    source = HERE / f"{name}.c"
    parts = [source, *sorted(HERE.glob("*.h"))]
    digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:12]
    program = BUILD / f"{name}-{digest}"
    with BUILDING:
        if not program.exists():
            BUILD.mkdir(parents=True, exist_ok=True)
            partial = program.with_suffix(f".{os.getpid()}")
            command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(partial)]
            subprocess.run([*command, "-lrdkafka", "-lpthread"], check=True)
            partial.rename(program)
    return program


class Program:
    """A compiled program that runs."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[object],
        settings: Mapping[str, object] = MappingProxyType({}),
        cpu: str = GENERATOR_CPU,
    ) -> None:
        """`settings` are librdkafka's and the program's own, as `KEY=VALUE`."""
        command = [
            str(build_program(name)),
            *(str(argument) for argument in arguments),
            *(f"{key}={value}" for key, value in settings.items()),
        ]
        self._name = name
        self._process = subprocess.Popen(
            bound_command(command, cpu),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> None:
        """Returns when the program says `ready`; raises `RuntimeError` if it ends instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line != READY:
            self._process.kill()
            _, errors = self._process.communicate()
            message = f"{self._name} did not begin: {line}{errors}"
            raise RuntimeError(message)

    def result(self) -> dict[str, Any]:
        """Waits for its end; returns the JSON that it printed. Raises `RuntimeError` on failure."""
        try:
            output, errors = self._process.communicate(timeout=RUN_SECONDS_MAX)
        except BaseException:
            self.close()
            raise
        if self._process.returncode != 0:
            message = f"{self._name} ended with {self._process.returncode}: {output}{errors}"
            raise RuntimeError(message)
        said: dict[str, Any] = json.loads(output.splitlines()[-1])
        if said.get("errors"):
            message = f"{self._name} saw {said['errors']} errors: {said['first_error']}"
            raise RuntimeError(message)
        return said

    def close(self) -> None:
        """Ends the program, whatever it is doing."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()

"""A faulty folder for a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.faulty.faults import Faults

ROOT = Path(__file__).parent.parent.parent


class FaultyFolder:
    """`path` shows what is in the folder behind it, and fails as it is asked to."""

    def __init__(self, path: Path, behind: Path) -> None:
        self.path = path
        self.behind = behind
        path.mkdir(parents=True)
        behind.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.faulty.server", str(path), str(behind)]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )

    def fail(self, faults: Faults) -> None:
        """From when this returns on it fails so, and no otherwise."""
        assert self._server.stdin is not None
        self._server.stdin.write(faults.to_line())
        self._server.stdin.flush()
        self._expect("in force")

    def heal(self) -> None:
        """It is a good folder again."""
        self.fail(Faults())

    def _expect(self, text: str) -> None:
        assert self._server.stdout is not None
        said = self._server.stdout.readline().decode().strip()
        assert said == text, f"{said!r} instead of {text!r}: it takes root and /dev/fuse"

    def __enter__(self) -> Self:
        """Waits until it is mounted."""
        self._expect("mounted")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Unmounts it; programs that still have files of it open get errors."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

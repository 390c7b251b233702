"""The `freshet` command line as a program, against the whole service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.supervisor.run import ROOT

TIMEOUT_S = 120


class Program:
    """`freshet` of this checkout, with a home of its own."""

    def __init__(self, address: str, home: Path) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = {**kept, "HOME": str(home), "FRESHET_URL": address}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts it; its output can be read."""
        return subprocess.Popen(
            [sys.executable, "-m", "console.programs.cli", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, given: str = "", code: int = 0) -> str:
        """Runs it to its end; returns what it printed."""
        process = self.start(*arguments)
        out, err = process.communicate(given, TIMEOUT_S)
        assert process.returncode == code, f"{arguments}: {process.returncode}\n{out}\n{err}"
        return out

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 (decoded JSON)
        """Runs it with `-o json`; returns the API's object, decoded."""
        return json.loads(self(*arguments, "--output", "json"))


def signed_up(address: str, home: Path) -> Program:
    """Returns the program after a sign-up, with a cluster chosen by `freshet use`."""
    program = Program(address, home)
    email = f"cli-{os.urandom(4).hex()}@example.org"
    program("signup", "--email", email, "--organization", "Mine", given="correct horse battery\n")
    made = program.json("cluster", "create", "orders", "--region", "local", "--wait")
    assert (made["state"], made["type"]) == ("succeeded", "create_cluster")
    program("use", "orders")
    return program

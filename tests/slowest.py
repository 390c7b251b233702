"""The ten slowest tests of a run, and a limit that everyday tests keep.

usage: python -m tests.slowest LIMIT REPORT...   LIMIT in seconds; reports as pytest's `--junitxml`

Ends with 1 when a test took longer and is not in `slow_tests.toml`. What counts is the time of the
test itself, without its fixtures, on the clock: only `.ci/test` asks, which has the machine for
itself. On a machine that is busy with other things it is said and is no failure.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ALLOWED = Path(__file__).with_name("slow_tests.toml")
SHOWN = 10
# Processes that run or wait to run, for each core. A run of `.ci/test` alone has two.
BUSY_PER_CORE = 3.0


@dataclass(frozen=True)
class Took:
    """A test as pytest reports it: `tests.console.test_keys.TestRoles`, `test_x[a]`."""

    seconds: float
    module: str
    name: str

    @property
    def function(self) -> tuple[str, str]:
        """Its file's and its function's name, as in `slow_tests.toml`."""
        parts = self.module.split(".")
        file = next(i for i, part in enumerate(parts) if part.startswith("test_"))
        return "/".join(parts[: file + 1]) + ".py", self.name.partition("[")[0]

    def __str__(self) -> str:
        return f"{self.seconds:7.1f} s  {self.module}::{self.name}"


def read_reports(reports: Iterable[Path]) -> list[Took]:
    """All tests of some reports, the slowest first."""
    tests = [
        Took(float(case.get("time", 0)), case.get("classname", ""), case.get("name", ""))
        for report in reports
        for case in ElementTree.parse(report).iter("testcase")  # noqa: S314 - written by pytest
    ]
    return sorted(tests, key=lambda took: took.seconds, reverse=True)


def allowed() -> dict[tuple[str, str], str]:
    """File and function of each test that may be slow, with the reason."""
    entries = tomllib.loads(ALLOWED.read_text()).get("slow", [])
    return {(entry["file"], entry["test"]): entry["reason"] for entry in entries}


def too_slow(tests: Iterable[Took], limit_s: float, known: Iterable[tuple[str, str]]) -> list[Took]:
    """Tests that took longer than the limit and are not on the list."""
    known = set(known)
    return [took for took in tests if took.seconds > limit_s and took.function not in known]


def is_busy() -> bool:
    """Tells whether others had this machine in the last minutes, so that times say nothing."""
    return os.getloadavg()[1] > BUSY_PER_CORE * (os.cpu_count() or 1)


def main(arguments: list[str]) -> int:
    """Prints the slowest tests and those that took too long; returns the exit status."""
    limit_s, tests = float(arguments[0]), read_reports(map(Path, arguments[1:]))
    lines = [f"The {SHOWN} slowest of {len(tests)} tests:", *map(str, tests[:SHOWN])]
    slow = too_slow(tests, limit_s, allowed())
    busy = is_busy()
    if slow:
        lines += [
            f"Longer than {limit_s:g} s; make them shorter, mark them `full`, or name them with the"
            " reason in tests/slow_tests.toml:",
            *map(str, slow),
        ]
        if busy:
            lines.append("The machine was busy with other things: this time it is no failure.")
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(slow) and not busy)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

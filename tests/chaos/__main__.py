"""Hurts a cluster of three brokers at length, and then a single broker: `make chaos ARGS="..."`.

Of the first, a JSON line is printed for the part that was run: `--minutes N --seed N --part N`. A
long run is the parts 0, 1, 2, … of one seed. All other options are those of the second, for which
see `tests.clients`; with `--kills 0` it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import run_chaos
from tests.clients import __main__ as one_broker

# Set in the process that lives in namespaces of its own.
INSIDE = "FRESHET_CHAOS_INSIDE"
# A network in which packets can be lost without harm, and an end that ends all processes.
NAMESPACES = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--")


def main() -> int:
    """Runs what the command line says; the status is 1 where anything is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=__doc__, parents=[one_broker.options()]
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of the cluster of three")
    parser.add_argument("--part", type=int, default=0, help="of a long run with one seed")
    given = parser.parse_args()
    seed = one_broker.seed_of(given)
    if os.environ.get(INSIDE):
        return run_inside(Path(given.folder), given.minutes, seed, given.part)
    status = run_several(given.folder, given.minutes, seed, given.part) if given.minutes else 0
    if status == 0 and given.kills:
        one_broker.run(given, seed)
    return status


def run_several(parent: str | None, minutes: float, seed: int, part: int) -> int:
    """Runs the cluster in namespaces of its own; its files stay where anything is wrong."""
    print(f"seed {seed}, part {part}", file=sys.stderr)
    folder = tempfile.mkdtemp(prefix="freshet-chaos-", dir=parent)
    options = {"minutes": minutes, "seed": seed, "part": part, "folder": folder}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [*NAMESPACES, sys.executable, "-m", "tests.chaos", *words]
    status = subprocess.run(command, env={**os.environ, INSIDE: "1"}, check=False).returncode
    if status == 0:
        shutil.rmtree(folder)
    else:
        print(f"seed {seed}, part {part}: what it left is in {folder}", file=sys.stderr)
    return status


def run_inside(folder: Path, minutes: float, seed: int, part: int) -> int:
    """Runs the cluster in this process's namespaces and prints the report."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    report = run_chaos(folder, minutes=minutes, seed=seed, part=part)
    line = json.dumps(report)
    (folder / "report.json").write_text(line + "\n")
    print(line, flush=True)
    return 0 if report["sound"] else 1


if __name__ == "__main__":
    sys.exit(main())

"""Kills a broker under its clients, at length; `make chaos` does so after `tests.chaos`.

Two runs, each with its checks, and a JSON line at the end. Many small records, by producers of four
libraries and read by a group: `--records N --kills N`. Or gigabytes, whose log must be byte for
byte what was acknowledged: `--gib N --kills N`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

from tests.clients.chaos import run_chaos
from tests.clients.producers import PRODUCERS
from tests.clients.volume import run_volume

GIB = 1 << 30


def options() -> argparse.ArgumentParser:
    """What the command line may say, for a parser that has it."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--records", type=int, default=100_000, help="that a broker is killed under"
    )
    parser.add_argument("--gib", type=float, default=None, help="the run of gigabytes, so many")
    parser.add_argument("--kills", type=int, default=20, help="of the broker")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--clients", nargs="+", choices=PRODUCERS, default=list(PRODUCERS))
    parser.add_argument("--folder", default=None, help="where the data goes meanwhile")
    return parser


def run(given: argparse.Namespace, seed: int) -> None:
    """Runs what the options say and prints the summary as one JSON line. Raises `ChaosError`."""
    print(f"seed {seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="freshet-chaos-", dir=given.folder) as name:
        folder = Path(name)
        if given.gib is not None:
            total_bytes = round(given.gib * GIB)
            summary = run_volume(folder, total_bytes=total_bytes, kills=given.kills, seed=seed)
        else:
            summary = run_chaos(
                folder, records=given.records, kills=given.kills, seed=seed, clients=given.clients
            )
    print(json.dumps(summary))


def seed_of(given: argparse.Namespace) -> int:
    """The seed that was given, or a new one."""
    return given.seed if given.seed is not None else random.randrange(1 << 32)


def main() -> int:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.clients", description=__doc__, parents=[options()]
    )
    given = parser.parse_args()
    run(given, seed_of(given))
    return 0


if __name__ == "__main__":
    sys.exit(main())

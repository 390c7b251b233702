"""Kills a broker under its clients, at length: `make chaos ARGS="..."`.

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


def main() -> int:
    """Runs what the command line says and prints the summary as one JSON line."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--gib", type=float, default=None, help="the run of gigabytes, so many")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--clients", nargs="+", choices=PRODUCERS, default=list(PRODUCERS))
    parser.add_argument("--folder", default=None, help="where the data goes meanwhile")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 32)
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
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs one bench: `python -m tests.bench NAME [--rounds N] [--sides a,b] [--minutes N]`.

Alone, lists them. The result is the last line on standard output. `make bench B=NAME` builds what
is needed first.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from tests.bench.report import progress
from tests.bench.sides import GENERATOR_CPU

# As a shell says that a program ended by Ctrl-C.
STOPPED = 130

BENCHES = {
    "start_idle": "process start to first served request, and resident memory when idle",
    "gateway_cost": "through the gateway against direct: CPU seconds per GiB, latency at 30 % load",
    "wake": "a client connects to a sleeping cluster until its first produce is acked",
    "wake_pods": "the same where the broker is a pod of a real Kubernetes",
    "cell_simulation": "500 clusters on a real API server: made, swept, put to sleep, woken",
    "invoice": "issues a month's invoices for 10,000 organisations, PDFs excluded",
    "metering_cost": "the metering agent on against off: CPU seconds per GiB",
    "bill_exact": "faults on the way to the bill: bytes billed wrongly, by scan and proxy",
    "api": "REST: lists of 1,000 topics at 10/s while topics are created at 5/s",
    "lag_scale": "the console's page of groups, of 10,000",
    "rollup": "the nightly roll-up: usage rows a second and core, against plain scans",
    "produce_throughput": "1 topic, 100 partitions, 1 KiB records, acks all, unthrottled",
}


def main() -> int:
    """Parses the command line and runs the bench; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("name", nargs="?", choices=BENCHES)
    parser.add_argument(
        "--rounds",
        type=int,
        default=int(os.environ.get("ROUNDS") or 0) or None,
        help="paired rounds (default: the bench's own)",
    )
    parser.add_argument(
        "--sides",
        default=os.environ.get("SIDES") or None,
        help="only these sides, by comma, to try the bench itself",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=float(os.environ.get("MINUTES") or 0) or None,
        help="how long, for a bench whose length is a choice",
    )
    arguments = parser.parse_args()
    if arguments.name is None:
        for name, line in BENCHES.items():
            print(f"make bench B={name:<20} # {line}")
        return 0
    # The harness shares the generator's CPU, so that the brokers have theirs for themselves.
    os.sched_setaffinity(0, {int(GENERATOR_CPU)})
    bench = importlib.import_module(f"tests.bench.{arguments.name}")
    sides = arguments.sides.split(",") if arguments.sides else None
    options = {"minutes": arguments.minutes} if arguments.minutes else {}
    try:
        report = bench.run(rounds=arguments.rounds, only=sides, **options)
    except KeyboardInterrupt:
        progress("stopped")
        return STOPPED
    print(report.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

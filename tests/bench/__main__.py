"""Runs one bench: `python -m tests.bench NAME [--rounds N] [--sides a,b] [--scale N] ...`.

Alone, lists them. The result is the last line on standard output. `make bench B=NAME` builds what
is needed first.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
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
    "cpu_per_gib": "broker CPU seconds per GiB produced once, and consumed once",
    "produce_latency_batched": "latency at 70 % of the rate that kafka3 holds, in batches",
    "produce_latency_fragmented": "the same with 100 producers and a record a batch",
    "consume_throughput": "reading from storage and at the tail, by 1 and 10 readers",
    "cold_replay": "the tail's latency while history is read from disk at half its rate",
    "many_partitions": "10,000 idle partitions: memory of each, opening, latency beside them",
    "restart_one": "a broker killed with -9 under load: the gap as its clients see it",
    "recovery_growth": "start after a stop and after a kill, as the log grows",
    "cost_at_slo": "CPU and memory at the load and within the latency that kafka3 has",
    "profile": "where the broker's CPU time goes under LOAD=produce, fragmented, storage or tail",
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
    parser.add_argument(
        "--scale",
        type=float,
        default=float(os.environ.get("SCALE") or 0) or None,
        help="how much of the load, such as 0.1, to try the bench itself",
    )
    arguments = parser.parse_args()
    if arguments.name is None:
        for name, line in BENCHES.items():
            print(f"make bench B={name:<20} # {line}")
        return 0
    # The harness shares the generator's CPU, so that the brokers have theirs for themselves.
    os.sched_setaffinity(0, {int(GENERATOR_CPU)})
    # Brokers of 10,000 partitions, and 100 producers, have many files and connections open.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    bench = importlib.import_module(f"tests.bench.{arguments.name}")
    sides = arguments.sides.split(",") if arguments.sides else None
    given = {"minutes": arguments.minutes, "scale": arguments.scale}
    options = {name: value for name, value in given.items() if value is not None}
    try:
        report = bench.run(rounds=arguments.rounds, only=sides, **options)
    except KeyboardInterrupt:
        progress("stopped")
        return STOPPED
    print(report.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

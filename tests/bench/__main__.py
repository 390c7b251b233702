"""Runs one bench: `python -m tests.bench NAME [--rounds N] [--sides a,b] [--before COMMIT] ...`.

Alone, lists them. The result is the last line on standard output. `make bench B=NAME` builds what
is needed first.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sys

from tests.bench.before import Before, BeforeError
from tests.bench.codec import codecs_of
from tests.bench.report import progress
from tests.bench.sides import GENERATOR_CPU

# As a shell says that a program ended by Ctrl-C.
STOPPED = 130
# As argparse says that the command line is wrong.
REFUSED = 2

BENCHES = {
    "start_idle": "process start to first served request, and resident memory when idle",
    "gateway_cost": "through the gateway against direct: CPU seconds per GiB, latency at 30 % load",
    "wake": "a client connects to a sleeping cluster until its first produce is acked",
    "wake_pods": "the same where the broker is a pod of a real Kubernetes",
    "cell_simulation": "500 clusters on a real API server: made, swept, put to sleep, woken",
    "invoice": "issues a month's invoices for 10,000 organizations, PDFs excluded",
    "budgets": "10,000 budgets evaluated, costs of 50,000 topics, an idle cluster's minutes",
    "budget_delay": "bytes at a broker until a budget has it refuse more; a worker is killed",
    "ingest": "usage files of 1,000 tenants by one and by eight agents, and of an idle cluster",
    "metering_cost": "the metering agent on against off: CPU seconds per GiB",
    "bill_exact": "faults on the way to the bill: bytes billed wrongly, by scan and proxy",
    "api": "REST: lists of 1,000 topics at 10/s while topics are created at 5/s",
    "lag_scale": "the console's page of groups, of 10,000",
    "rollup": "the nightly roll-up: usage rows a second and core, against plain scans",
    "rollup_cluster": "a day on a cluster of Spark and S3: kills, copies, ROWS=10000000; one hash",
    "rollup_shapes": "the roll-up with AQE, other partition counts, and a skewed day; ROWS=1000000",
    "produce_throughput": "1 topic, 100 partitions, 1 KiB records, acks all, unthrottled",
    "cpu_per_gib": "broker CPU seconds per GiB produced once, and consumed once",
    "produce_latency_batched": "latency at 70 % of the rate that kafka3 holds, in batches",
    "produce_latency_fragmented": "the same with 100 producers and a record a batch",
    "consume_throughput": "reading from storage and at the tail, by 1 and 10 readers",
    "cold_replay": "the tail's latency while history is read from disk at half its rate",
    "many_partitions": "10,000 idle partitions: memory of each, opening, latency beside them",
    "restart_one": "a broker killed with -9 under load: the gap as its clients see it",
    "takeover_kill": "the leader of three brokers is killed with -9 under load: its clients' gap",
    "takeover_hang": "the leader of three brokers hangs (SIGSTOP) under load: its clients' gap",
    "move": "all that one of three brokers leads is moved to the others under load: the gap",
    "false_takeovers": "three brokers, idle and then saturated: how many were fenced for nothing",
    "recovery_growth": "start after a stop and after a kill, as the log grows",
    "cost_at_slo": "CPU and memory at the load and within the latency that kafka3 has",
    "bombs": "a client's p99 beside batches that decompress to 100 MiB and 2 GiB",
    "isolation": "a tenant's p99 (produce, log in, REST) beside each attack of another tenant",
    "isolation_hour": "all those attacks at once on ten tenants: p99, nothing lost, all billed",
    "profile": "where the broker's CPU time goes under LOAD=produce, fragmented, storage or tail",
}

# Those that compare brokers: the build of an earlier commit can be a side of them.
BESIDE_BEFORE = {
    "start_idle",
    "produce_throughput",
    "cpu_per_gib",
    "produce_latency_batched",
    "produce_latency_fragmented",
    "consume_throughput",
    "cold_replay",
    "many_partitions",
    "restart_one",
    "recovery_growth",
    "cost_at_slo",
    "bombs",
}

# Those whose producers can compress.
WITH_CODEC = {"produce_throughput", "cpu_per_gib", "profile"}


def check_codec(bench: str, choice: str) -> None:
    """Raises `ValueError` if the bench takes no codec, or there is none of this name."""
    if bench not in WITH_CODEC:
        able = ", ".join(sorted(WITH_CODEC))
        message = f"{bench} takes no codec: leave CODEC out, or run one of {able}"
        raise ValueError(message)
    codecs_of(choice)


def commit_before(bench: str, name: str, builds: Before) -> str:
    """The full id of the commit `name`, which is to be a side of a bench.

    Raises `BeforeError` if the bench takes no such side, or the clone has no such commit.
    """
    if bench not in BESIDE_BEFORE:
        able = ", ".join(sorted(BESIDE_BEFORE))
        message = (
            f"{bench} does not compare brokers, so no build of an earlier commit can be a side of "
            f"it: leave BEFORE out, or run one of {able}"
        )
        raise BeforeError(message)
    return builds.commit_of(name)


def main() -> int:
    """Parses the command line and runs the bench; returns the exit status."""
    arguments = _parser().parse_args()
    if arguments.name is None:
        for name, line in BENCHES.items():
            print(f"make bench B={name:<20} # {line}")
        return 0
    given = {"minutes": arguments.minutes, "scale": arguments.scale, "codec": arguments.codec}
    try:
        if arguments.codec:
            check_codec(arguments.name, arguments.codec)
        if arguments.before:
            builds = Before()
            given["before"] = commit_before(arguments.name, arguments.before, builds)
            if not arguments.check:
                builds.check_built(given["before"])
    except (BeforeError, ValueError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    if arguments.check:
        return 0
    # The harness shares the generator's CPU, so that the brokers have theirs for themselves.
    os.sched_setaffinity(0, {int(GENERATOR_CPU)})
    # Brokers of 10,000 partitions, and 100 producers, have many files and connections open.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    bench = importlib.import_module(f"tests.bench.{arguments.name}")
    sides = arguments.sides.split(",") if arguments.sides else None
    options = {name: value for name, value in given.items() if value is not None}
    try:
        report = bench.run(rounds=arguments.rounds, only=sides, **options)
    except KeyboardInterrupt:
        progress("stopped")
        return STOPPED
    if report.earlier is not None and report.earlier.figures:
        progress(f"beside the commit {report.earlier.commit}:\n{report.earlier.table()}")
    print(report.line(), flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
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
    parser.add_argument(
        "--codec",
        default=os.environ.get("CODEC") or None,
        help="how producers compress: none, gzip, snappy, lz4, zstd, or all (none, lz4, zstd)",
    )
    parser.add_argument(
        "--before",
        default=os.environ.get("BEFORE") or None,
        metavar="COMMIT",
        help="the build of an earlier commit runs as one more side, in the same rounds",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="refuse what cannot run, and run nothing",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

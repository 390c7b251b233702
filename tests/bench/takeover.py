"""One of three brokers ends under load, and the others take over.

`takeover_kill` kills one with -9; its keeper starts it again a second later. `takeover_hang` stops
the process (SIGSTOP) as a host that hangs, and replaces it once the load is over. A producer with
librdkafka's own defaults sends 1,000 records a second to all of 1,000 partitions, with all acks;
the gap is the time that the slowest record took. `value` and `peer` are the worst gap, ours and
that of three brokers of Apache Kafka. `led_worst_ms` is the servers' part: until a survivor names
other leaders of all partitions. In the end all that was acknowledged is counted.
"""

from __future__ import annotations

import random
import signal
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.clusters import FRESHET3, KAFKA3, SIDES, ClusterSide, Watcher, running_cluster
from tests.bench.generators import Load, Producing
from tests.bench.readers import Reading, consume_records
from tests.bench.report import Report, progress
from tests.bench.rounds import Figures, Rounds, summarize_sides
from tests.bench.sides import chosen
from tests.bench.topics import create_topic

ROUNDS = 2
TIMES = 5
RECORD_BYTES = 1024
RATE = 1_000
TOPIC = "takeover"
PARTITIONS = 1_000
# Until a producer has connected to all brokers.
SKIP_MS = 1_500
AFTER_S = (2.0, 4.0)
RESPAWN_AFTER_S = 1.0
# Nobody waits longer for a record too many, which should not come.
READ_SECONDS = 10


@dataclass(frozen=True)
class Ending:
    """How a broker ends, and for how long the load goes on, by side."""

    bench: str
    signal: int
    seconds: dict[str, int]


KILL = Ending("takeover_kill", signal.SIGKILL, {FRESHET3: 10, KAFKA3: 40})
HANG = Ending("takeover_hang", signal.SIGSTOP, {FRESHET3: 12, KAFKA3: 100})


def run_ending(
    ending: Ending, rounds: int | None, only: Sequence[str] | None, scale: float
) -> Report:
    """Runs the bench of one way to end. `scale` has fewer of them."""
    names = chosen(SIDES, only)
    times = max(1, round(TIMES * scale))
    turns = Rounds(ending.bench, names, rounds or ROUNDS, {"times": times})
    samples = turns.play(lambda name: _measure(name, ending, times))

    def worst(name: str) -> float | None:
        return max(samples[name]["gap_worst_ms"]) if name in samples else None

    return Report(
        bench=turns.bench,
        value=worst(FRESHET3),
        unit="ms",
        peer=worst(KAFKA3),
        details={
            "rounds": turns.count,
            "times": turns.count * times,
            "records_missing": {
                name: sum(figures["records_missing"]) for name, figures in samples.items()
            },
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
    )


def _measure(name: str, ending: Ending, times: int) -> Figures:
    chance = random.Random(name)
    with running_cluster(name) as side:
        create_topic(side, TOPIC, PARTITIONS)
        watcher, sent, gaps, led = Watcher(side, TOPIC), 0, [], []
        for _ in range(times):
            watcher.until_whole()
            records = RATE * ending.seconds[name]
            gap_ms, led_ms = _end_once(side, watcher, ending, records, chance.uniform(*AFTER_S))
            sent += records
            gaps.append(gap_ms)
            led.append(led_ms)
            progress(f"  {name}: gap {gap_ms:.0f} ms, led by another after {led_ms:.0f} ms")
        # One more than there should be, so that a record too many is seen.
        reading = Reading(side.bootstrap, TOPIC, PARTITIONS, sent + 1, seconds=READ_SECONDS)
        records_read = consume_records(reading).records
        return {
            "gap_median_ms": statistics.median(gaps),
            "gap_worst_ms": max(gaps),
            "led_median_ms": statistics.median(led),
            "led_worst_ms": max(led),
            "records_missing": sent - records_read,
        }


def _end_once(
    side: ClusterSide, watcher: Watcher, ending: Ending, records: int, after_s: float
) -> tuple[float, float]:
    """Ends a leader; returns the gap, and the time until others lead all partitions, in ms."""
    client = side.client
    bootstrap = str(client.pop("bootstrap.servers"))
    load = Load(bootstrap, TOPIC, records, RECORD_BYTES, client, rate=RATE, skip_ms=SKIP_MS)
    producing = Producing(load)
    leader = watcher.leader()
    server = side.servers[leader - side.first_node]
    try:
        threading.Event().wait(after_s)
        ended_at = time.monotonic()
        server.send_signal(ending.signal)
        led_s = watcher.until_led_by_others(leader) - ended_at
        if ending.signal == signal.SIGKILL:
            server.wait()
            threading.Event().wait(RESPAWN_AFTER_S)
            side.respawn(leader)
        gap_ms = producing.result().max_ms
    finally:
        producing.close()
    if server.poll() is None:
        server.kill()
        server.wait()
        side.respawn(leader)
    return gap_ms, 1000 * led_s

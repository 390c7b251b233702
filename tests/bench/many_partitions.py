"""10,000 idle partitions in one broker, then 1 % of them active.

`value` and `peer` are KiB of resident memory per idle partition, ours and kafka1's: what a broker
has more, after they were created or after it was started with them, whichever is more, than one
that was started with ten. In `details`: the time from a start, after an orderly stop and after a
kill, until every partition answers; and the latency of a paced load over 100 of them, against the
same over 10 partitions alone, each the median of several plays.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from tests.bench import paced, proc
from tests.bench.generators import Load, run_light
from tests.bench.report import Report, ratio
from tests.bench.rounds import Figures, Rounds, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, Side, chosen, running
from tests.bench.topics import create_topic, start_and_open

SIDES = ("freshet", "kafka1")
PEER = "kafka1"
ROUNDS = 3
PARTITIONS = 10_000
TOPICS = 10
FEW = paced.Shape(partitions=10, record_bytes=1024, settings={"linger.ms": 0})
RATE = 1_000
SECONDS = 20.0
# The 99th percentile of one play is 10 records a second: a few stalls of the machine move it.
PLAYS = 3
LATENCIES = ("p50_ms", "p99_ms", "p999_ms")


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` has it take fewer partitions and less time."""
    names = chosen(SIDES, only, before)
    turns = Rounds("many_partitions", names, rounds or ROUNDS, {"scale": scale})
    samples = turns.play(lambda name: _measure(name, scale))
    return Report(
        bench=turns.bench,
        value=median(samples, FRESHET, "kib_per_partition"),
        unit="KiB/partition",
        peer=median(samples, PEER, "kib_per_partition"),
        details={
            "rounds": turns.count,
            "partitions": round(PARTITIONS * scale),
            "opened_ms": median(samples, FRESHET, "opened_ms"),
            "opened_after_kill_ms": median(samples, FRESHET, "opened_after_kill_ms"),
            "p99_ratio": {
                name: ratio(median(samples, name, "many_p99_ms"), median(samples, name, "p99_ms"))
                for name in names
            },
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, median(samples, BEFORE, "kib_per_partition")),
    )


def _measure(name: str, scale: float) -> Figures:
    many = round(PARTITIONS * scale)
    idle = {f"idle{number}": many // TOPICS for number in range(TOPICS)}
    seconds = SECONDS * scale
    with running(name) as side:
        paced.warm_up(side, FEW, round(RATE * seconds), RATE)
        few = _played(side, FEW, seconds, paced.TOPIC)
        side.stop()
        start_and_open(side, {paced.TOPIC: FEW.partitions})
        few_mib = _resting_mib(side)
        began = time.monotonic()
        for topic, partitions in idle.items():
            create_topic(side, topic, partitions)
        created_s = time.monotonic() - began
        created_mib = _resting_mib(side)
        side.stop()
        opened_s = start_and_open(side, idle)
        opened_mib = _resting_mib(side)
        active = _active(side, many, seconds)
        side.kill()
        return {
            "kib_per_partition": 1024 * (max(created_mib, opened_mib) - few_mib) / many,
            "rss_few_mb": few_mib,
            "rss_created_mb": created_mib,
            "rss_opened_mb": opened_mib,
            "created_s": created_s,
            "opened_ms": 1000 * opened_s,
            "opened_after_kill_ms": 1000 * start_and_open(side, idle),
            **few,
            **{f"many_{key}": value for key, value in active.items()},
        }


def _resting_mib(side: Side) -> float:
    proc.wait_for_rest(side.pids)
    return proc.resident_mib(side.pids)


def _active(side: Side, many: int, seconds: float) -> Figures:
    """Latencies of a load over 1 % more partitions, while the others are idle."""
    proc.wait_for_rest(side.pids)
    shape = paced.Shape(max(1, many // 100), FEW.record_bytes, settings=FEW.settings)
    create_topic(side, "active", shape.partitions)
    run_light(Load(side.bootstrap, "active", round(RATE * seconds), 1024, rate=RATE))
    return _played(side, shape, seconds, "active")


def _played(side: Side, shape: paced.Shape, seconds: float, topic: str) -> Figures:
    plays = [paced.play_load(side, shape, RATE, seconds, topic) for _ in range(PLAYS)]
    return {key: statistics.median(play[key] for play in plays) for key in LATENCIES}

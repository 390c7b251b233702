"""One broker is killed with -9 under load and started again at once, as its keeper would.

A producer with librdkafka's own defaults sends 1,000 records a second; the gap is the longest time
between two acknowledgements around the kill. `value` and `peer` are the worst gap, ours and
kafka1's; in `details` also the time until the new process serves, and the records that are missing
or too many at the end.
"""

from __future__ import annotations

import random
import statistics
import threading
from collections.abc import Sequence

from tests.bench import paced
from tests.bench.generators import Load, Producing
from tests.bench.readers import Reading, consume_records
from tests.bench.report import Report, progress
from tests.bench.rounds import Figures, Rounds, beside_earlier, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, Side, chosen, kind_of, running
from tests.bench.topics import create_topic

SIDES = ("freshet", "kafka1")
PEER = "kafka1"
ROUNDS = 3
KILLS = 7
TOPIC = "restart"
SHAPE = paced.Shape(partitions=100, record_bytes=1024)
RATE = 1_000
# Kafka takes seconds to come back; the load goes on well beyond.
SECONDS = {"freshet": 8, "kafka1": 25}
KILL_AFTER_S = (2.0, 4.0)
# Nobody waits longer for a record too many, which should not come.
READ_SECONDS = 10


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` has fewer kills."""
    names = chosen(SIDES, only, before)
    kills = max(1, round(KILLS * scale))
    turns = Rounds("restart_one", names, rounds or ROUNDS, {"kills": kills})
    samples = turns.play(lambda name: _measure(name, kills))

    def worst(name: str) -> float | None:
        return max(samples[name]["gap_worst_ms"]) if name in samples else None

    return Report(
        bench=turns.bench,
        value=worst(FRESHET),
        unit="ms",
        peer=worst(PEER),
        details={
            "rounds": turns.count,
            "kills": turns.count * kills,
            "records_missing": {
                name: sum(figures["records_missing"]) for name, figures in samples.items()
            },
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, worst(BEFORE)),
    )


def _measure(name: str, kills: int) -> Figures:
    chance = random.Random(kind_of(name))
    with running(name) as side:
        create_topic(side, TOPIC, SHAPE.partitions)
        sent, gaps, served = 0, [], []
        for _ in range(kills):
            records = RATE * SECONDS[kind_of(name)]
            gap_ms, served_ms = _kill_once(side, records, chance.uniform(*KILL_AFTER_S))
            sent += records
            gaps.append(gap_ms)
            served.append(served_ms)
            progress(f"  {name}: gap {gap_ms:.0f} ms, serving again after {served_ms:.0f} ms")
        # One more than there should be, so that a record too many is seen.
        reading = Reading(side.bootstrap, TOPIC, SHAPE.partitions, sent + 1, seconds=READ_SECONDS)
        records_read = consume_records(reading).records
        return {
            "gap_median_ms": statistics.median(gaps),
            "gap_worst_ms": max(gaps),
            "served_median_ms": statistics.median(served),
            "served_worst_ms": max(served),
            "records_missing": sent - records_read,
        }


def _kill_once(side: Side, records: int, after_s: float) -> tuple[float, float]:
    """Kills the broker; returns the producer's gap and the time until another serves, in ms."""
    load = Load(side.bootstrap, TOPIC, records, SHAPE.record_bytes, rate=RATE)
    producing = Producing(load)
    try:
        threading.Event().wait(after_s)
        side.kill()
        served_s = side.start()
        return producing.result().gap_max_ms, 1000 * served_s
    finally:
        producing.close()

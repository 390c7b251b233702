"""A load on a cluster of three brokers that is disturbed: the gap that its producer sees.

A producer with librdkafka's own defaults sends 1,000 records a second to all of 1,000 partitions,
with all acks; the gap is the time that the slowest record took. `value` and `peer` are the worst
gap, ours and that of three brokers of Apache Kafka. `led_worst_ms` is the servers' part: until a
broker names the new leaders of all partitions. In the end all that was acknowledged is counted, and
a record that was not acknowledged fails the bench. `details.acked_by_second` has the records that
were acknowledged in each second, for each disturbance, as the charts show them.
"""

from __future__ import annotations

import random
import statistics
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.bench.charts import longest_gaps, second_by_second
from tests.bench.clusters import (
    FRESHET3,
    KAFKA3,
    SIDES,
    ClusterSide,
    Watcher,
    load_on,
    running_cluster,
)
from tests.bench.generators import Produced, Producing
from tests.bench.readers import Reading, consume_records
from tests.bench.report import Report, progress
from tests.bench.rounds import Figures, Rounds, summarize_sides
from tests.bench.sides import chosen
from tests.bench.topics import create_topic

ROUNDS = 2
TIMES = 5
RECORD_BYTES = 1024
RATE = 1_000
TOPIC = "disturbed"
PARTITIONS = 1_000
# Until a producer has connected to all brokers.
SKIP_MS = 1_500
AFTER_S = (2.0, 4.0)
# Three JVMs on one CPU take a minute until they keep up with the rate.
WARM_UP_S = 60
# Nobody waits longer for a record too many, which should not come.
READ_SECONDS = 10
CHARTS = "acked_by_second"


@dataclass(frozen=True)
class Disturbance:
    """What disturbs the load, and for how long the load goes on, by side.

    `begin` gives the seconds until other brokers led; on exit it has the cluster whole again.
    """

    bench: str
    seconds: dict[str, int]
    begin: Callable[[ClusterSide, Watcher], AbstractContextManager[float]]


def run_disturbed(
    disturbance: Disturbance, rounds: int | None, only: Sequence[str] | None, scale: float
) -> Report:
    """Runs the bench of a disturbance. `scale` has fewer of them."""
    names = chosen(SIDES, only)
    times = max(1, round(TIMES * scale))
    turns = Rounds(disturbance.bench, names, rounds or ROUNDS, {"times": times})
    charts = turns.facts.setdefault(CHARTS, {name: [] for name in names})
    samples = turns.play(lambda name: _measure(name, disturbance, times, charts[name]))
    gaps = {name: figures["gap_worst_ms"] for name, figures in samples.items()}
    progress(f"longest gaps:\n{longest_gaps(gaps)}")

    def worst(name: str) -> float | None:
        return max(gaps[name]) if name in gaps else None

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
            CHARTS: charts,
            "machine": turns.limits,
        },
    )


def _measure(
    name: str, disturbance: Disturbance, times: int, charts: list[Sequence[int]]
) -> Figures:
    chance = random.Random(name)
    with running_cluster(name) as side:
        create_topic(side, TOPIC, PARTITIONS)
        warm_up = RATE * WARM_UP_S
        _produce(side, warm_up).result()
        watcher, sent, gaps, led = Watcher(side, TOPIC), warm_up, [], []
        for _ in range(times):
            watcher.until_whole()
            records = RATE * disturbance.seconds[name]
            produced, led_ms = _disturb_once(
                side, watcher, disturbance, records, chance.uniform(*AFTER_S)
            )
            sent += records
            gaps.append(produced.max_ms)
            led.append(led_ms)
            charts.append(produced.acked_by_second)
            progress(
                f"  {name}: gap {produced.max_ms:.0f} ms, led by another after {led_ms:.0f} ms "
                f"|{second_by_second(produced.acked_by_second, RATE)}|"
            )
        watcher.until_whole()
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


def _disturb_once(
    side: ClusterSide, watcher: Watcher, disturbance: Disturbance, records: int, after_s: float
) -> tuple[Produced, float]:
    """Disturbs a load; returns what it saw, and the time until others led, in ms."""
    producing = _produce(side, records)
    try:
        threading.Event().wait(after_s)
        with disturbance.begin(side, watcher) as led_s:
            return producing.result(), 1000 * led_s
    finally:
        producing.close()


def _produce(side: ClusterSide, records: int) -> Producing:
    """A producer at work."""
    return Producing(load_on(side, TOPIC, records, RECORD_BYTES, rate=RATE, skip_ms=SKIP_MS))

"""A load at a fixed rate with one reader at its end: latencies, CPU and memory of a side.

The rate is an open loop: latencies count from the moment at which a record was due, so whoever
stalls is charged for every record that should have been sent meanwhile.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.bench import proc
from tests.bench.generators import Load, run_light
from tests.bench.readers import Consuming, Reading
from tests.bench.report import progress
from tests.bench.rounds import Figures, Rounds
from tests.bench.sides import Side, running
from tests.bench.topics import create_topic

TOPIC = "paced"
PEER = "kafka3"
RATE_SHARE = 0.7
# Connections are made and first metadata is fetched in the first second.
SKIP_S = 2
PROBE_S = 8
# A rate is held where it is reached and nothing piles up.
HELD_SHARE = 0.97
HELD_P99_MS = 1000.0
STEP = 0.85
STEPS_MAX = 20


@dataclass(frozen=True)
class Shape:
    """How records are sent; see `Load`."""

    partitions: int
    record_bytes: int
    producers: int = 1
    one_by_one: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)


def warm_up(side: Side, shape: Shape, records: int, rate: int = 0) -> None:
    """Creates the topic, fills every cache and has JVMs compile their hot path, which takes
    three of them on one CPU a minute. Without `rate` it sends as fast as the side takes it.
    """
    create_topic(side, TOPIC, shape.partitions)
    send_records(side, shape, records, rate)


def send_records(side: Side, shape: Shape, records: int, rate: int = 0) -> float:
    """Sends records and waits until the side rests again.

    Returns the records a second that it took: without `rate`, as many as the side could.
    """
    produced = run_light(load_of(shape, side.bootstrap, records, rate))
    proc.wait_for_rest(side.pids)
    return records / produced.seconds


def play_load(side: Side, shape: Shape, rate: int, seconds: float, topic: str = TOPIC) -> Figures:
    """Sends at a rate for so long, beside a reader; returns the figures."""
    records = round(rate * (seconds + SKIP_S))
    reader = Consuming(
        Reading(
            side.bootstrap,
            topic,
            shape.partitions,
            records,
            from_end=True,
            stamped=True,
            skip_ms=1000 * SKIP_S,
        )
    )
    before, stolen, began = proc.usage(side.pids), proc.stolen_seconds(), time.monotonic()
    try:
        produced = run_light(load_of(shape, side.bootstrap, records, rate, topic))
        consumed = reader.result()
    finally:
        reader.close()
    used, seconds_in_all = proc.usage(side.pids).since(before), time.monotonic() - began
    late = {} if produced.late_p99_ms is None else {"late_p99_ms": produced.late_p99_ms}
    return {
        "rate": rate,
        "reached_share": records / produced.seconds / rate,
        "p50_ms": produced.p50_ms,
        "p99_ms": produced.p99_ms,
        "p999_ms": produced.p999_ms,
        "max_ms": produced.max_ms,
        "end_to_end_p50_ms": consumed.p50_ms,
        "end_to_end_p99_ms": consumed.p99_ms,
        "end_to_end_p999_ms": consumed.p999_ms,
        "generators_cpu_share": produced.generator_cpu_share + consumed.reader_cpu_share,
        "broker_cpus": used.cpu_seconds / seconds_in_all,
        "stolen_cpus": (proc.stolen_seconds() - stolen) / seconds_in_all,
        "rss_mb": proc.resident_mib(side.pids),
        **late,
    }


def rate_below_peer(turns: Rounds, shape: Shape, warm_up_records: int) -> int:
    """70 % of the highest rate that the peer holds in a shape, found once for all rounds."""
    held: int = turns.fact(f"rate_held_by_{PEER}", lambda: held_rate(PEER, shape, warm_up_records))
    return round(RATE_SHARE * held)


@contextlib.contextmanager
def warmed_up(name: str, shape: Shape, records: int, rate: int, seconds: float) -> Iterator[Side]:
    """A side that runs, after so many records at full speed and so many seconds at a rate."""
    with running(name) as side:
        warm_up(side, shape, records)
        send_records(side, shape, round(rate * seconds), rate)
        yield side


def held_rate(name: str, shape: Shape, warm_up_records: int) -> int:
    """The highest rate, in steps of 15 %, that a side holds in a shape, in records a second."""
    with running(name) as side:
        warm_up(side, shape, warm_up_records)
        rate = send_records(side, shape, warm_up_records)
        for _ in range(STEPS_MAX):
            proc.wait_for_rest(side.pids)
            figures = play_load(side, shape, round(rate), PROBE_S)
            progress(
                f"{name} at {rate:.0f}/s: {figures['reached_share']:.3f} of it reached, "
                f"p99 {figures['p99_ms']:.1f} ms"
            )
            if figures["reached_share"] >= HELD_SHARE and figures["p99_ms"] < HELD_P99_MS:
                return round(rate)
            rate *= STEP
    message = f"{name} holds no rate of this shape"
    raise RuntimeError(message)


def load_of(shape: Shape, bootstrap: str, records: int, rate: int = 0, topic: str = TOPIC) -> Load:
    """Records of a shape; at a rate, those of the first seconds do not count."""
    return Load(
        bootstrap,
        topic,
        records,
        shape.record_bytes,
        shape.settings,
        rate,
        shape.producers,
        stamp=True,
        skip_ms=1000 * SKIP_S if rate else 0,
        one_by_one=shape.one_by_one,
    )

"""Reading by 1 and 10 readers, from storage and at the tail: broker CPU seconds per GiB read.

From storage: brokers are started anew over a topic and read it from the beginning; on all sides the
kernel may have it in its page cache. At the tail: readers follow a load at a fixed rate; what the
load alone costs is measured beside it and taken off. Readers only count and discard, and have
connections of their own. Kafka's ConsumerPerformance reads once from storage too. `value` and
`peer` are one reader from storage, ours and kafka1's (which uses sendfile); the other shapes are in
`details`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import proc, warm
from tests.bench.cpu_per_gib import ROLL_AFTER_MS, wait_until_settled
from tests.bench.generators import Load, run_consumer_performance, run_light
from tests.bench.readers import Consuming, Reading, consume_records
from tests.bench.report import Report, ratio
from tests.bench.rounds import Figures, Rounds, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, Side, chosen, running
from tests.bench.topics import create_topic, start_and_open

SIDES = ("freshet", "kafka1", "kafka3")
PEER = "kafka1"
ROUNDS = 3
STORED, FOLLOWED = "stored", "followed"
PARTITIONS = 100
RECORD_BYTES = 1024
RECORDS = 1_000_000
READERS = (1, 10)
TAIL_RATE = 20_000
TAIL_SECONDS = 20
GIB = 2**30


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` has it read less."""
    names = chosen(SIDES, only, before)
    turns = Rounds("consume_throughput", names, rounds or ROUNDS, {"scale": scale})
    samples = turns.play(lambda name: _measure(name, scale))
    shapes = [f"{where}_{readers}" for where in ("storage", "tail") for readers in READERS]
    headline = f"{shapes[0]}_cpu_s_per_gib"
    return Report(
        bench=turns.bench,
        value=median(samples, FRESHET, headline),
        unit="CPU-s/GiB",
        peer=median(samples, PEER, headline),
        details={
            "rounds": turns.count,
            "ratios": {
                shape: ratio(
                    median(samples, FRESHET, f"{shape}_cpu_s_per_gib"),
                    median(samples, PEER, f"{shape}_cpu_s_per_gib"),
                )
                for shape in shapes
            },
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, median(samples, BEFORE, headline)),
    )


def _measure(name: str, scale: float) -> Figures:
    records = round(RECORDS * scale)
    with running(name, [f"lane.roll_after_ms = {ROLL_AFTER_MS}"]) as side:
        warm.produce_records(side, scale)
        create_topic(side, STORED, PARTITIONS)
        create_topic(side, FOLLOWED, PARTITIONS)
        run_light(Load(side.bootstrap, STORED, records, RECORD_BYTES))
        wait_until_settled(side)
        side.stop()
        start_and_open(
            side, {STORED: PARTITIONS, FOLLOWED: PARTITIONS, warm.TOPIC: warm.PARTITIONS}
        )
        figures: Figures = {}
        # A JVM compiles its hot path anew after each start.
        warm.read_records(side, scale)
        for readers in READERS:
            figures |= _from_storage(side, records, readers)
        figures |= _by_java(side, records)
        rate = round(TAIL_RATE * min(1.0, 2 * scale))
        _follow_tail(side, rate, 0)
        alone = _follow_tail(side, rate, 0)
        for readers in READERS:
            used = _follow_tail(side, rate, readers) - alone
            gib = readers * rate * TAIL_SECONDS * RECORD_BYTES / GIB
            figures[f"tail_{readers}_cpu_s_per_gib"] = used / gib
        return figures | {"rss_mb": proc.resident_mib(side.pids)}


def _from_storage(side: Side, records: int, readers: int) -> Figures:
    proc.wait_for_rest(side.pids)
    before = proc.usage(side.pids)
    seen = consume_records(Reading(side.bootstrap, STORED, PARTITIONS, records, readers))
    proc.wait_for_rest(side.pids)
    used = proc.usage(side.pids).since(before).cpu_seconds
    return {
        f"storage_{readers}_cpu_s_per_gib": used * GIB / seen.total_bytes,
        f"storage_{readers}_mib_per_s": seen.mib_per_s,
        f"storage_{readers}_reader_cpu_share": seen.reader_cpu_share,
    }


def _by_java(side: Side, records: int) -> Figures:
    proc.wait_for_rest(side.pids)
    before = proc.usage(side.pids)
    mib_per_s = run_consumer_performance(side.bootstrap, STORED, records)
    proc.wait_for_rest(side.pids)
    used = proc.usage(side.pids).since(before).cpu_seconds
    return {
        "storage_java_cpu_s_per_gib": used * GIB / (records * RECORD_BYTES),
        "storage_java_mib_per_s": mib_per_s,
    }


def _follow_tail(side: Side, rate: int, readers: int) -> float:
    """CPU seconds of a load at a rate with so many readers at its end, until the brokers rest."""
    proc.wait_for_rest(side.pids)
    records = rate * TAIL_SECONDS
    before = proc.usage(side.pids)
    consuming = (
        Consuming(Reading(side.bootstrap, FOLLOWED, PARTITIONS, records, readers, from_end=True))
        if readers
        else None
    )
    try:
        run_light(Load(side.bootstrap, FOLLOWED, records, RECORD_BYTES, rate=rate))
        if consuming is not None:
            consuming.result()
    finally:
        if consuming is not None:
            consuming.close()
    wait_until_settled(side)
    return proc.usage(side.pids).since(before).cpu_seconds

"""Latency of many small batches: 100 producers, linger 0, one record of 1 KiB a batch.

At 70 % of the highest rate that kafka3 holds in this shape, found in the same run: `value` and
`peer` are the 99.9th percentile there, ours and kafka3's. And at 10,000 a second, by the sides that
can: ours is compared with the disk's own `fdatasync`, and with the least that this load takes on
the machine (`least.c`), both measured beside it in each round. And one record after another, each
read before the next is sent, by Kafka's EndToEndLatency.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import least, machine, paced
from tests.bench.generators import run_end_to_end_latency
from tests.bench.report import Report
from tests.bench.rounds import Figures, Rounds, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, chosen, kind_of, work_folder

SIDES = ("freshet", "kafka1", "kafkaf", "kafka3")
# The others are saturated far below: see the rate that kafka3 holds.
SIDES_AT_FULL_RATE = ("freshet", "kafka1")
ROUNDS = 5
SHAPE = paced.Shape(partitions=100, record_bytes=1024, producers=100, one_by_one=True)
FULL_RATE = 10_000
SECONDS = 30.0
WARM_UP_SECONDS = 30.0
# A kafka3 takes 800 a second of the first 10,000, 5,000 of the tenth, 7,300 of the sixteenth.
WARM_UP_RECORDS = 150_000
SYNCS = 2000
ONE_BY_ONE = 3000


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` shortens each measurement."""
    names = chosen(SIDES, only, before)
    seconds, warm_up = SECONDS * scale, round(WARM_UP_RECORDS * scale)
    turns = Rounds("produce_latency_fragmented", names, rounds or ROUNDS, {"scale": scale})
    rate = paced.rate_below_peer(turns, SHAPE, warm_up)

    def measure(name: str) -> Figures:
        with paced.warmed_up(name, SHAPE, warm_up, rate, WARM_UP_SECONDS * scale) as side:
            figures = paced.play_load(side, SHAPE, rate, seconds)
            if name == FRESHET:
                produced = least.play_load(SHAPE, FULL_RATE, seconds)
                figures |= {"least_p50_ms": produced.p50_ms, "least_p99_ms": produced.p99_ms}
            if kind_of(name) in SIDES_AT_FULL_RATE:
                full = paced.play_load(side, SHAPE, FULL_RATE, seconds)
                figures |= {f"full_rate_{key}": value for key, value in full.items()}
            one = run_end_to_end_latency(side.bootstrap, "one", ONE_BY_ONE, SHAPE.record_bytes)
            figures |= {f"one_by_one_{key}": value for key, value in one.items()}
            syncs = machine.sync_latency(work_folder(), SYNCS)
            return figures | {key: syncs[key] for key in ("fdatasync_p50_ms", "fdatasync_p99_ms")}

    samples = turns.play(measure)
    sync = median(samples, FRESHET, "fdatasync_p99_ms")
    return Report(
        bench=turns.bench,
        value=median(samples, FRESHET, "p999_ms"),
        unit="ms",
        peer=median(samples, paced.PEER, "p999_ms"),
        details={
            "rounds": turns.count,
            **turns.facts,
            "rate": rate,
            "full_rate": FULL_RATE,
            "full_rate_p99_ms": median(samples, FRESHET, "full_rate_p99_ms"),
            "full_rate_p99_aim_ms": None if sync is None else round(2 * sync + 1, 3),
            "least_p99_ms": median(samples, FRESHET, "least_p99_ms"),
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, median(samples, BEFORE, "p999_ms")),
    )

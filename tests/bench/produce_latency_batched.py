"""Latency in batches at 70 % of the highest rate that kafka3 holds, found in the same run.

`value` and `peer` are the 99.9th percentile from when a record was due to its acknowledgement, ours
and kafka3's; the others, and those from there to a reader, are in `details`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import paced, warm
from tests.bench.report import Report, ratio
from tests.bench.rounds import Figures, Rounds, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, chosen

SIDES = ("freshet", "kafka1", "kafkaf", "kafka3")
ROUNDS = 5
SHAPE = paced.Shape(partitions=100, record_bytes=1024)
SECONDS = 30.0
WARM_UP_SECONDS = 60.0


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` shortens each measurement."""
    names = chosen(SIDES, only, before)
    seconds, warm_up = SECONDS * scale, round(warm.RECORDS * scale)
    turns = Rounds("produce_latency_batched", names, rounds or ROUNDS, {"scale": scale})
    rate = paced.rate_below_peer(turns, SHAPE, warm_up)

    def measure(name: str) -> Figures:
        with paced.warmed_up(name, SHAPE, warm_up, rate, WARM_UP_SECONDS * scale) as side:
            return paced.play_load(side, SHAPE, rate, seconds)

    samples = turns.play(measure)
    ours = median(samples, FRESHET, "end_to_end_p999_ms")
    return Report(
        bench=turns.bench,
        value=median(samples, FRESHET, "p999_ms"),
        unit="ms",
        peer=median(samples, paced.PEER, "p999_ms"),
        details={
            "rounds": turns.count,
            **turns.facts,
            "rate": rate,
            "end_to_end_p999_ratio": ratio(ours, median(samples, paced.PEER, "end_to_end_p999_ms")),
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, median(samples, BEFORE, "p999_ms")),
    )

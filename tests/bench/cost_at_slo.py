"""CPU and memory of the brokers at the same load, where ours keeps what kafka3 promises.

The load is that of `produce_latency_batched`: 70 % of the highest rate that kafka3 holds, with one
reader. `value` and `peer` are the CPUs that the brokers used; memory is in `details`, and whether
our 99.9th percentile was within kafka3's, without which the comparison says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import paced, produce_latency_batched, warm
from tests.bench.report import Report, ratio
from tests.bench.rounds import Figures, Rounds, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, chosen

SIDES = ("freshet", "kafka3")
ROUNDS = 3
SHAPE = produce_latency_batched.SHAPE
SECONDS = 60.0
WARM_UP_SECONDS = produce_latency_batched.WARM_UP_SECONDS


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench. `scale` shortens each measurement."""
    names = chosen(SIDES, only, before)
    warm_up = round(warm.RECORDS * scale)
    turns = Rounds("cost_at_slo", names, rounds or ROUNDS, {"scale": scale})
    rate = paced.rate_below_peer(turns, SHAPE, warm_up)

    def measure(name: str) -> Figures:
        with paced.warmed_up(name, SHAPE, warm_up, rate, WARM_UP_SECONDS * scale) as side:
            return paced.play_load(side, SHAPE, rate, SECONDS * scale)

    samples = turns.play(measure)
    ours, theirs = (median(samples, name, "p999_ms") for name in (FRESHET, paced.PEER))
    rss = ratio(median(samples, FRESHET, "rss_mb"), median(samples, paced.PEER, "rss_mb"))
    return Report(
        bench=turns.bench,
        value=median(samples, FRESHET, "broker_cpus"),
        unit="CPUs",
        peer=median(samples, paced.PEER, "broker_cpus"),
        details={
            "rounds": turns.count,
            **turns.facts,
            "rate": rate,
            "rss_ratio": rss,
            "p999_ms": {"value": ours, "peer": theirs},
            "within_the_peers_p999": None if ours is None or theirs is None else ours <= theirs,
            "sides": summarize_sides(samples),
            "machine": turns.limits,
        },
        earlier=beside_earlier(samples, before, median(samples, BEFORE, "broker_cpus")),
    )

"""One topic, 100 partitions, 1 KiB records, 1 MiB batches, acks all, linger 1 ms, unthrottled.

Two generators drive each side: Kafka's ProducerPerformance and one on librdkafka. `value` is MiB/s
by the second, which is the harder driver; where it used all of its CPU it was the limit, and broker
CPU seconds per GiB decide. What a broker does after the load (write-back, splitting) is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.bench import proc, warm
from tests.bench.generators import GENERATORS, Load
from tests.bench.report import Report, progress
from tests.bench.rounds import Figures, Rounds, Samples, beside_earlier, median, summarize_sides
from tests.bench.sides import BEFORE, FRESHET, Side, chosen, running
from tests.bench.topics import create_topic

SIDES = ("freshet", "kafka1", "kafkaf", "kafka3")
PEER = "kafka3"
HEADLINE = "librdkafka"
ROUNDS = 5

PARTITIONS = 100
RECORD_BYTES = 1024
RECORDS = 1_000_000
GENERATOR_LIMIT_SHARE = 0.95


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
) -> Report:
    """Runs the bench: each round starts every side anew and drives it with every generator."""
    names = chosen(SIDES, only, before)
    turns = Rounds("produce_throughput", names, rounds or ROUNDS, {"scale": scale})
    return _report(turns, turns.play(lambda name: _play_round(name, scale)), before)


def _play_round(name: str, scale: float) -> Figures:
    figures: Figures = {}
    with running(name) as side:
        warm.produce_records(side, scale)
        for generator in GENERATORS:
            topic = f"produce-{generator}"
            create_topic(side, topic, PARTITIONS)
            seen = _measure(side, generator, topic, round(RECORDS * scale))
            progress(f"  {generator}: { {key: round(v, 2) for key, v in seen.items()} }")
            figures |= {f"{generator} {key}": value for key, value in seen.items()}
        return figures


def _measure(side: Side, generator: str, topic: str, records: int) -> Figures:
    load = Load(side.bootstrap, topic, records, RECORD_BYTES)
    before = proc.usage(side.pids)
    produced = GENERATORS[generator](load)
    under_load = proc.usage(side.pids).since(before)
    proc.wait_for_rest(side.pids)
    used = proc.usage(side.pids).since(before)
    gib = load.total_bytes / 2**30
    return {
        "mib_per_s": produced.mib_per_s,
        "broker_cpu_s_per_gib": used.cpu_seconds / gib,
        "broker_cpu_s_per_gib_under_load": under_load.cpu_seconds / gib,
        "write_amplification": used.written_bytes / load.total_bytes,
        "generator_cpu_share": produced.generator_cpu_share,
        "p50_ms": produced.p50_ms,
        "p99_ms": produced.p99_ms,
        "p999_ms": produced.p999_ms,
        "rss_mb": proc.resident_mib(side.pids),
    }


def _of(samples: Samples, generator: str) -> Samples:
    """The figures of one generator."""
    return {
        name: {
            key.removeprefix(f"{generator} "): values
            for key, values in figures.items()
            if key.startswith(f"{generator} ")
        }
        for name, figures in samples.items()
    }


def _report(turns: Rounds, samples: Samples, before: str | None) -> Report:
    headline = _of(samples, HEADLINE)
    ours_cpu, peer_cpu = (
        median(headline, name, "broker_cpu_s_per_gib") for name in (FRESHET, PEER)
    )
    details: dict[str, Any] = {
        "rounds": turns.count,
        "generator": HEADLINE,
        "generator_is_the_limit": [
            name
            for name in headline
            if (median(headline, name, "generator_cpu_share") or 0) >= GENERATOR_LIMIT_SHARE
        ],
        "broker_cpu_s_per_gib": {"value": ours_cpu, "peer": peer_cpu},
        "generators": {
            generator: summarize_sides(_of(samples, generator)) for generator in GENERATORS
        },
        "machine": turns.limits,
    }
    return Report(
        bench=turns.bench,
        value=median(headline, FRESHET, "mib_per_s"),
        unit="MiB/s",
        peer=median(headline, PEER, "mib_per_s"),
        details=details,
        earlier=beside_earlier(samples, before, median(headline, BEFORE, "mib_per_s")),
    )

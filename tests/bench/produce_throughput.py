"""One topic, 100 partitions, 1 KiB records, 1 MiB batches, acks all, linger 1 ms, unthrottled.

Three generators drive each side: one on librdkafka, one that sends batches that were compressed
beforehand, and Kafka's ProducerPerformance. `value` is MiB/s by the one that drives brokers hardest
under the codec: librdkafka where nothing is compressed, prepared batches otherwise. Where that
generator used all of its CPU it was the limit, and broker CPU seconds per GiB decide. What a broker
does after the load (write-back, splitting) is counted.

MiB and GiB are those of the records' values, uncompressed; what begins with `wire_` is of the bytes
that generators sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.bench import proc, warm
from tests.bench.codec import codecs_of
from tests.bench.generators import GENERATORS, Load
from tests.bench.payloads import RECORDS_A_BATCH
from tests.bench.report import Report, progress, ratio
from tests.bench.rounds import (
    Figures,
    Rounds,
    Samples,
    beside_earlier,
    median,
    named_by_variant,
    summarize_sides,
)
from tests.bench.sides import BEFORE, FRESHET, Side, chosen, running
from tests.bench.topics import create_topic

SIDES = ("freshet", "kafka1", "kafkaf", "kafka3")
PEER = "kafka3"
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
    codec: str | None = None,
) -> Report:
    """Runs the bench: each round starts every side anew and drives it with every generator.

    `codec` is a name, or `all`; `value` is of the first one.
    """
    names, codecs = chosen(SIDES, only, before), codecs_of(codec)
    parameters = {"scale": scale, "codecs": codecs}
    turns = Rounds("produce_throughput", names, rounds or ROUNDS, parameters)
    samples = turns.play_variants(codecs, lambda name, codec: _play_round(name, codec, scale))
    first, generator = samples[codecs[0]], headline_of(codecs[0])
    figure = f"{generator} mib_per_s"
    return Report(
        bench=turns.bench,
        value=median(first, FRESHET, figure),
        unit="MiB/s",
        peer=median(first, PEER, figure),
        details={
            "rounds": turns.count,
            "codec": codecs[0],
            "codecs": {codec: _details(samples[codec], codec, names) for codec in codecs},
            "machine": turns.limits,
        },
        earlier=beside_earlier(named_by_variant(samples), before, median(first, BEFORE, figure)),
    )


def headline_of(codec: str) -> str:
    """The generator whose figures count under a codec."""
    return "librdkafka" if codec == "none" else "prepared"


def _play_round(name: str, codec: str, scale: float) -> Figures:
    figures: Figures = {}
    records = RECORDS_A_BATCH * max(1, round(RECORDS * scale / RECORDS_A_BATCH))
    with running(name) as side:
        warm.produce_records(side, scale, codec)
        for generator in GENERATORS:
            topic = f"produce-{generator}"
            create_topic(side, topic, PARTITIONS)
            load = Load(side.bootstrap, topic, records, RECORD_BYTES, codec=codec)
            seen = _measure(side, generator, load)
            progress(f"  {generator}: { {key: round(v, 2) for key, v in seen.items()} }")
            figures |= {f"{generator} {key}": value for key, value in seen.items()}
        return figures


def _measure(side: Side, generator: str, load: Load) -> Figures:
    before = proc.usage(side.pids)
    produced = GENERATORS[generator](load)
    under_load = proc.usage(side.pids).since(before)
    proc.wait_for_rest(side.pids)
    used = proc.usage(side.pids).since(before)
    gib, wire_gib = load.total_bytes / 2**30, produced.wire_bytes / 2**30
    return {
        "mib_per_s": produced.mib_per_s,
        "wire_mib_per_s": produced.wire_mib_per_s,
        "compression": produced.compression,
        "broker_cpu_s_per_gib": used.cpu_seconds / gib,
        "broker_cpu_s_per_gib_under_load": under_load.cpu_seconds / gib,
        "wire_broker_cpu_s_per_gib": used.cpu_seconds / wire_gib,
        "write_amplification": used.written_bytes / load.total_bytes,
        "wire_write_amplification": used.written_bytes / produced.wire_bytes,
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


def _details(samples: Samples, codec: str, names: Sequence[str]) -> dict[str, Any]:
    """The figures under one codec."""
    generator = headline_of(codec)
    headline = _of(samples, generator)
    compared = ("mib_per_s", "broker_cpu_s_per_gib")
    return {
        "generator": generator,
        "mib_per_s": _beside_peer(headline, "mib_per_s"),
        "wire_mib_per_s": _beside_peer(headline, "wire_mib_per_s"),
        "broker_cpu_s_per_gib": _beside_peer(headline, "broker_cpu_s_per_gib"),
        "wire_broker_cpu_s_per_gib": _beside_peer(headline, "wire_broker_cpu_s_per_gib"),
        "ratios": {
            name: {
                key: ratio(median(headline, FRESHET, key), median(headline, name, key))
                for key in compared
            }
            for name in names
            if name != FRESHET
        },
        "generator_is_the_limit": [
            name
            for name in headline
            if (median(headline, name, "generator_cpu_share") or 0) >= GENERATOR_LIMIT_SHARE
        ],
        "generators": {name: summarize_sides(_of(samples, name)) for name in GENERATORS},
    }


def _beside_peer(samples: Samples, figure: str) -> dict[str, float | None]:
    return {"value": median(samples, FRESHET, figure), "peer": median(samples, PEER, figure)}

"""One topic, 100 partitions, 1 KiB records, 1 MiB batches, acks all, linger 1 ms, unthrottled.

Two generators drive each side: Kafka's ProducerPerformance and one on librdkafka. `value` is MiB/s
by the second, which is the harder driver; where it used all of its CPU it was the limit, and broker
CPU seconds per GiB decide. What a broker does after the load (write-back, splitting) is counted.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.bench import machine, proc
from tests.bench.generators import GENERATORS, Load
from tests.bench.report import Report, progress, spread
from tests.bench.sides import (
    BROKER_CPU,
    FRESHET,
    GENERATOR_CPU,
    Side,
    chosen,
    open_side,
    rotated,
    work_folder,
)

SIDES = ("freshet", "kafka1", "kafkaf", "kafka3")
PEER = "kafka3"
HEADLINE = "librdkafka"
ROUNDS = 3

PARTITIONS = 100
RECORD_BYTES = 1024
RECORDS = 1_000_000
# Lets a JVM broker compile its hot path, and every side fill its caches, before anything counts.
WARM_UP_RECORDS = 200_000
GENERATOR_LIMIT_SHARE = 0.95

# generator → side → figure → samples
Samples = dict[str, dict[str, dict[str, list[float]]]]


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: each round starts every side anew and drives it with every generator."""
    rounds = rounds or ROUNDS
    names = chosen(SIDES, only)
    limits = machine.limits(work_folder(), GENERATOR_CPU, BROKER_CPU)
    samples: Samples = {g: {name: defaultdict(list) for name in names} for g in GENERATORS}
    for number in range(rounds):
        for name in rotated(names, number):
            progress(f"round {number + 1} of {rounds}: {name}")
            _round(name, samples)
    return _report(rounds, samples, limits)


def _round(name: str, samples: Samples) -> None:
    side = open_side(name)
    try:
        side.start()
        for generator in GENERATORS:
            topic = f"produce-{generator}"
            _create_topic(side, topic)
            warm_up = Load(side.bootstrap, topic, WARM_UP_RECORDS, RECORD_BYTES)
            GENERATORS[HEADLINE](warm_up)
            proc.wait_for_rest(side.pids)
            figures = _measure(side, generator, topic)
            for key, value in figures.items():
                samples[generator][name][key].append(value)
            progress(f"  {generator}: { {key: round(v, 2) for key, v in figures.items()} }")
    finally:
        side.close()


def _measure(side: Side, generator: str, topic: str) -> dict[str, float]:
    load = Load(side.bootstrap, topic, RECORDS, RECORD_BYTES)
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


def _create_topic(side: Side, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=side.replication)
    for outcome in admin.create_topics([new], operation_timeout=30).values():
        outcome.result()


def _report(rounds: int, samples: Samples, limits: dict[str, Any]) -> Report:
    headline = samples[HEADLINE]

    def median(name: str, key: str) -> float | None:
        return round(statistics.median(headline[name][key]), 3) if name in headline else None

    ours_cpu, peer_cpu = (median(name, "broker_cpu_s_per_gib") for name in (FRESHET, PEER))
    return Report(
        bench="produce_throughput",
        value=median(FRESHET, "mib_per_s"),
        unit="MiB/s",
        peer=median(PEER, "mib_per_s"),
        details={
            "rounds": rounds,
            "generator": HEADLINE,
            "generator_is_the_limit": [
                name
                for name in headline
                if (median(name, "generator_cpu_share") or 0) >= GENERATOR_LIMIT_SHARE
            ],
            "broker_cpu_s_per_gib": {"value": ours_cpu, "peer": peer_cpu},
            "generators": {
                generator: {
                    name: {key: spread(values, 3) for key, values in figures.items()}
                    for name, figures in sides.items()
                }
                for generator, sides in samples.items()
            },
            "machine": limits,
        },
    )

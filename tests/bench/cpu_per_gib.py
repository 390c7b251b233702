"""Broker CPU seconds per GiB produced once, and per GiB consumed once by a client that discards it.

`value` and `peer` are those of producing, ours and kafka3's; consuming and the ratios to every side
are in `details`. What is put off counts: figures are read when the brokers have come to rest, after
ours has split what a quiet lane would keep for a minute.

A GiB is of the records' values, uncompressed; what begins with `wire_` is of the bytes that clients
sent or received.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from tests.bench import proc, warm
from tests.bench.codec import codecs_of
from tests.bench.generators import Load, run_light
from tests.bench.readers import Reading, consume_records
from tests.bench.report import Report, ratio
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
TOPIC = "cpu"
PARTITIONS = 100
RECORD_BYTES = 1024
RECORDS = 1_500_000
ROLL_AFTER_MS = 3000
SETTLE_S = 6.0
GIB = 2**30


def run(
    rounds: int | None = None,
    only: Sequence[str] | None = None,
    scale: float = 1.0,
    before: str | None = None,
    codec: str | None = None,
) -> Report:
    """Runs the bench. `scale` has it produce less. `codec` is a name, or `all`; `value` is of the
    first one."""
    names, codecs = chosen(SIDES, only, before), codecs_of(codec)
    parameters = {"scale": scale, "codecs": codecs}
    turns = Rounds("cpu_per_gib", names, rounds or ROUNDS, parameters)
    samples = turns.play_variants(codecs, lambda name, codec: _measure(name, codec, scale))
    first = samples[codecs[0]]
    return Report(
        bench=turns.bench,
        value=median(first, FRESHET, "produced"),
        unit="CPU-s/GiB",
        peer=median(first, PEER, "produced"),
        details={
            "rounds": turns.count,
            "codec": codecs[0],
            "codecs": {codec: _details(samples[codec], names) for codec in codecs},
            "machine": turns.limits,
        },
        earlier=beside_earlier(
            named_by_variant(samples), before, median(first, BEFORE, "produced")
        ),
    )


def _details(samples: Samples, names: Sequence[str]) -> dict[str, Any]:
    """The figures under one codec."""
    figures = ("produced", "consumed")
    return {
        key: {"value": median(samples, FRESHET, key), "peer": median(samples, PEER, key)}
        for figure in figures
        for key in (figure, f"wire_{figure}")
    } | {
        "ratios": {
            name: {
                key: ratio(median(samples, FRESHET, key), median(samples, name, key))
                for key in figures
            }
            for name in names
            if name != FRESHET
        },
        "sides": summarize_sides(samples),
    }


def wait_until_settled(side: Side) -> None:
    """Waits until a broker has done all that it put off."""
    threading.Event().wait(SETTLE_S)
    proc.wait_for_rest(side.pids)


def _measure(name: str, codec: str, scale: float) -> Figures:
    records = round(RECORDS * scale)
    with running(name, [f"lane.roll_after_ms = {ROLL_AFTER_MS}"]) as side:
        warm.produce_records(side, scale, codec)
        warm.read_records(side, scale)
        create_topic(side, TOPIC, PARTITIONS)
        wait_until_settled(side)
        load = Load(side.bootstrap, TOPIC, records, RECORD_BYTES, codec=codec)
        before = proc.usage(side.pids)
        produced = run_light(load)
        wait_until_settled(side)
        used = proc.usage(side.pids).since(before)
        before = proc.usage(side.pids)
        consumed = consume_records(Reading(side.bootstrap, TOPIC, PARTITIONS, records))
        wait_until_settled(side)
        read = proc.usage(side.pids).since(before)
        return {
            "produced": used.cpu_seconds * GIB / load.total_bytes,
            "consumed": read.cpu_seconds * GIB / consumed.total_bytes,
            "wire_produced": used.cpu_seconds * GIB / produced.wire_bytes,
            "wire_consumed": read.cpu_seconds * GIB / consumed.wire_bytes,
            "compression": produced.compression,
            "write_amplification": used.written_bytes / load.total_bytes,
            "wire_write_amplification": used.written_bytes / produced.wire_bytes,
            "produced_mib_per_s": produced.mib_per_s,
            "wire_produced_mib_per_s": produced.wire_mib_per_s,
            "consumed_mib_per_s": consumed.mib_per_s,
            "wire_consumed_mib_per_s": consumed.wire_mib_per_s,
            "generator_cpu_share": produced.generator_cpu_share,
            "reader_cpu_share": consumed.reader_cpu_share,
            "rss_mb": proc.resident_mib(side.pids),
        }

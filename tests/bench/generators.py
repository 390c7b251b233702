"""Load generators: Kafka's own ProducerPerformance, a light one on librdkafka (`produce.c`), one
that sends batches that were made beforehand (`prepared.c`), and one that sends each record as a
request of its own (`trickle.c`)."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.bench.payloads import RECORDS_A_BATCH, batch_file, record_file
from tests.bench.programs import Program
from tests.bench.sides import GENERATOR_CPU
from tests.peer.kafka import java_tool

RUN_SECONDS_MAX = 900.0
BATCH_BYTES = 1024 * 1024

SUMMARY = re.compile(
    r"^(?P<records>\d+) records sent, [\d.]+ records/sec \((?P<rate>[\d.]+) MB/sec\), .*?"
    r"(?P<p50>\d+) ms 50th, \d+ ms 95th, (?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99\.9th",
    re.MULTILINE,
)


# The row after the header: times, MB, MB.sec, records, records a second, and more.
READ_ROW = re.compile(
    r"^\d{4}-[^,]+,[^,]+,\s*(?P<mb>[\d.]+),\s*(?P<rate>[\d.]+),\s*(?P<n>\d+),", re.MULTILINE
)
OUTGOING_BYTES = re.compile(
    r"^producer-metrics:outgoing-byte-total:\{[^}]*\}\s*:\s*(?P<bytes>[\d.]+)", re.MULTILINE
)
PERCENTILES = re.compile(r"50th = (?P<p50>\d+), 99th = (?P<p99>\d+), 99\.9th = (?P<p999>\d+)")


@dataclass(frozen=True)
class Load:
    """What is to be produced: `records` of `record_bytes` each, to one topic.

    With a `codec`, of which `none` is one too, the records are those of `payloads.py`; without one
    they are bytes that do not compress, and are not compressed.

    The rest is for neither Kafka's generator nor prepared batches. `settings` are librdkafka's, and
    win over what its generator sets itself; `one_by_one` has each record be a request, without
    librdkafka, and `settings` be that generator's. `rate` is in records a second, where 0 is as
    fast as it goes; with a rate, latencies count from the moment at which a record was due.
    `producers` take turns. `stamp` puts that moment into each record, for whoever reads it.
    Latencies of the first `skip_ms` do not count.
    """

    bootstrap: str
    topic: str
    records: int
    record_bytes: int
    settings: Mapping[str, object] = field(default_factory=dict)
    rate: int = 0
    producers: int = 1
    stamp: bool = False
    skip_ms: int = 0
    one_by_one: bool = False
    codec: str | None = None

    @property
    def total_bytes(self) -> int:
        """Bytes of all records' values, uncompressed."""
        return self.records * self.record_bytes


@dataclass(frozen=True)
class Produced:
    """What a generator saw. Latencies are to a record's acknowledgement; see `Load`.

    `wire_bytes` is all that it sent to brokers, and `compression` how often that is in the bytes of
    the records' values. Rates are of the values, and `wire_mib_per_s` is of what was sent.
    """

    mib_per_s: float
    wire_bytes: int
    compression: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    generator_cpu_share: float
    # Not of Kafka's generator: the longest time between two acknowledgements, the slowest record.
    gap_max_ms: float = 0.0
    max_ms: float = 0.0
    seconds: float = 0.0
    # How many records were acknowledged in each second, of five minutes at most.
    acked_by_second: tuple[int, ...] = ()
    # Of records that are sent one by one: from when one was due until it was handed to the socket.
    late_p99_ms: float | None = None

    @property
    def wire_mib_per_s(self) -> float:
        """The rate of the bytes that were sent."""
        return self.mib_per_s / self.compression


LIBRDKAFKA_SETTINGS = {
    "acks": "all",
    "enable.idempotence": "true",
    "linger.ms": "1",
    "batch.size": BATCH_BYTES,
    # Kafka's own limit of a request's records: one batch and its header.
    "message.max.bytes": BATCH_BYTES + 12,
    "compression.codec": "none",
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 256 * 1024,
}


class Producing:
    """A light generator at work."""

    def __init__(self, load: Load) -> None:
        if load.one_by_one and load.codec is not None:
            message = "records that are sent one by one are not compressed"
            raise ValueError(message)
        self._load = load
        settings = {
            **({} if load.one_by_one else LIBRDKAFKA_SETTINGS),
            **_codec_settings(load),
            **load.settings,
            "rate": load.rate,
            "producers": load.producers,
            "stamp": int(load.stamp),
            "skip_ms": load.skip_ms,
        }
        arguments = (load.bootstrap, load.topic, load.records, load.record_bytes)
        program = "trickle" if load.one_by_one else "produce"
        self._program = Program(program, arguments, settings)

    def result(self) -> Produced:
        """Waits for the end. Raises `RuntimeError` if a record was not acknowledged."""
        return produced_of(self._load, self._program.result())

    def close(self) -> None:
        """Ends it before its end."""
        self._program.close()


def _codec_settings(load: Load) -> dict[str, object]:
    if load.codec is None:
        return {}
    return {"compression.codec": load.codec, "payloads": record_file(load.record_bytes)}


def produced_of(load: Load, seen: Mapping[str, Any]) -> Produced:
    """What one of the C programs printed at its end."""
    return Produced(
        mib_per_s=load.total_bytes / 2**20 / seen["seconds"],
        wire_bytes=seen["wire_bytes"],
        compression=load.total_bytes / seen["wire_bytes"],
        p50_ms=seen["p50_ms"],
        p99_ms=seen["p99_ms"],
        p999_ms=seen["p999_ms"],
        generator_cpu_share=seen["cpu_seconds"] / seen["seconds"],
        gap_max_ms=seen["gap_max_ms"],
        max_ms=seen["max_ms"],
        seconds=seen["seconds"],
        acked_by_second=tuple(seen["delivered_by_second"]),
        late_p99_ms=seen.get("late_p99_ms"),
    )


def run_prepared(load: Load) -> Produced:
    """Produces batches of a thousand records that were made and compressed beforehand.

    Raises `RuntimeError` if a batch was not acknowledged.
    """
    if load.codec is None or load.records % RECORDS_A_BATCH:
        message = f"prepared batches have a codec and {RECORDS_A_BATCH} records each, not {load}"
        raise ValueError(message)
    file = batch_file(load.codec, load.record_bytes)
    batches = load.records // RECORDS_A_BATCH
    program = Program("prepared", (load.bootstrap, load.topic, batches, file))
    return produced_of(load, program.result())


def run_light(load: Load) -> Produced:
    """Produces with a light generator. Raises `RuntimeError` if a record was not acknowledged."""
    return Producing(load).result()


def run_producer_performance(load: Load) -> Produced:
    """Produces with Kafka's ProducerPerformance; its first fifth warms the JVM up, uncounted."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = java_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", load.topic, "--num-records", str(load.records)),
        *_java_payload(load),
        *("--throughput", "-1", "--print-metrics"),
        *("--warmup-records", str(load.records // 5)),
        "--command-property",
        f"bootstrap.servers={load.bootstrap}",
        *("acks=all", "linger.ms=1", f"batch.size={BATCH_BYTES}", "enable.idempotence=true"),
        f"compression.type={load.codec or 'none'}",
        cpus=GENERATOR_CPU,
        heap="1g",
        timeout=RUN_SECONDS_MAX,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summaries = list(SUMMARY.finditer(result.stdout))
    sent = OUTGOING_BYTES.search(result.stdout)
    if not summaries or sent is None:
        message = f"ProducerPerformance gave no summary: {result.stdout}{result.stderr}"
        raise RuntimeError(message)
    # The last summary is the one without the warm-up.
    summary = summaries[-1]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rate = float(summary["rate"])
    wire_bytes = round(float(sent["bytes"]))
    return Produced(
        mib_per_s=rate,
        wire_bytes=wire_bytes,
        compression=load.total_bytes / wire_bytes,
        p50_ms=float(summary["p50"]),
        p99_ms=float(summary["p99"]),
        p999_ms=float(summary["p999"]),
        # Java's own start counts in CPU and not in time, so this is an upper bound.
        generator_cpu_share=min(1.0, cpu / (load.total_bytes / 2**20 / rate)),
    )


def _java_payload(load: Load) -> tuple[str, str]:
    if load.codec is None:
        return "--record-size", str(load.record_bytes)
    return "--payload-file", str(record_file(load.record_bytes))


def run_consumer_performance(bootstrap: str, topic: str, records: int) -> float:
    """Reads a topic with Kafka's ConsumerPerformance; gives MiB/s."""
    result = java_tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records)),
        *("--timeout", "60000"),
        cpus=GENERATOR_CPU,
        timeout=RUN_SECONDS_MAX,
    )
    row = READ_ROW.search(result.stdout)
    if row is None or int(row["n"]) < records:
        message = f"ConsumerPerformance did not read all: {result.stdout}{result.stderr}"
        raise RuntimeError(message)
    return float(row["rate"])


def run_end_to_end_latency(bootstrap: str, topic: str, records: int, size: int) -> dict[str, float]:
    """Kafka's EndToEndLatency, one record at a time: its percentiles, in whole milliseconds."""
    result = java_tool(
        "org.apache.kafka.tools.EndToEndLatency",
        *(bootstrap, topic, str(records), "all", str(size)),
        cpus=GENERATOR_CPU,
        timeout=RUN_SECONDS_MAX,
    )
    percentiles = PERCENTILES.search(result.stdout)
    if percentiles is None:
        message = f"EndToEndLatency gave no percentiles: {result.stdout}{result.stderr}"
        raise RuntimeError(message)
    return {f"{name}_ms": float(value) for name, value in percentiles.groupdict().items()}


GENERATORS: dict[str, Callable[[Load], Produced]] = {
    "librdkafka": run_light,
    "prepared": run_prepared,
    "java": run_producer_performance,
}

"""Load generators: Kafka's own ProducerPerformance, and a light one on librdkafka (`produce.c`)."""

from __future__ import annotations

import hashlib
import json
import re
import resource
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.sides import GENERATOR_CPU
from tests.peer.jars import ROOT
from tests.peer.kafka import java_tool
from tests.peer.processes import bound_command

SOURCE = Path(__file__).parent / "produce.c"
BUILD = ROOT / ".bench" / "build"
RUN_SECONDS_MAX = 900.0
BATCH_BYTES = 1024 * 1024

SUMMARY = re.compile(
    r"^(?P<records>\d+) records sent, [\d.]+ records/sec \((?P<rate>[\d.]+) MB/sec\), .*?"
    r"(?P<p50>\d+) ms 50th, \d+ ms 95th, (?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99\.9th",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Load:
    """What is to be produced: `records` of `record_bytes` each, to one topic.

    `settings` are librdkafka's, for its generator only, and win over what that sets itself; so is
    `rate`, in records a second, where 0 is as fast as it goes.
    """

    bootstrap: str
    topic: str
    records: int
    record_bytes: int
    settings: Mapping[str, object] = field(default_factory=dict)
    rate: int = 0

    @property
    def total_bytes(self) -> int:
        """Bytes of all records' values."""
        return self.records * self.record_bytes


@dataclass(frozen=True)
class Produced:
    """What a generator saw. Latencies are from handing a record over to its acknowledgement."""

    mib_per_s: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    generator_cpu_share: float


def run_librdkafka(load: Load) -> Produced:
    """Produces with the light generator. Raises `RuntimeError` if a record was not acknowledged."""
    settings = {
        "acks": "all",
        "enable.idempotence": "true",
        "linger.ms": "1",
        "batch.size": BATCH_BYTES,
        # Kafka's own limit of a request's records: one batch and its header.
        "message.max.bytes": BATCH_BYTES + 12,
        "compression.codec": "none",
        "queue.buffering.max.messages": 200_000,
        "queue.buffering.max.kbytes": 256 * 1024,
        **load.settings,
        "rate": load.rate,
    }
    command = [
        str(build_librdkafka_generator()),
        *(load.bootstrap, load.topic, str(load.records), str(load.record_bytes)),
        *(f"{key}={value}" for key, value in settings.items()),
    ]
    result = subprocess.run(
        bound_command(command, GENERATOR_CPU),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    if result.returncode != 0:
        message = f"the generator ended with {result.returncode}: {result.stdout}{result.stderr}"
        raise RuntimeError(message)
    seen = json.loads(result.stdout)
    return Produced(
        mib_per_s=load.total_bytes / 2**20 / seen["seconds"],
        p50_ms=seen["p50_ms"],
        p99_ms=seen["p99_ms"],
        p999_ms=seen["p999_ms"],
        generator_cpu_share=seen["cpu_seconds"] / seen["seconds"],
    )


def run_producer_performance(load: Load) -> Produced:
    """Produces with Kafka's ProducerPerformance; its first fifth warms the JVM up, uncounted."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = java_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", load.topic, "--num-records", str(load.records)),
        *("--record-size", str(load.record_bytes), "--throughput", "-1"),
        *("--warmup-records", str(load.records // 5)),
        "--command-property",
        f"bootstrap.servers={load.bootstrap}",
        *("acks=all", "linger.ms=1", f"batch.size={BATCH_BYTES}", "enable.idempotence=true"),
        cpus=GENERATOR_CPU,
        heap="1g",
        timeout=RUN_SECONDS_MAX,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summaries = list(SUMMARY.finditer(result.stdout))
    if not summaries:
        message = f"ProducerPerformance gave no summary: {result.stdout}{result.stderr}"
        raise RuntimeError(message)
    # The last summary is the one without the warm-up.
    summary = summaries[-1]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rate = float(summary["rate"])
    return Produced(
        mib_per_s=rate,
        p50_ms=float(summary["p50"]),
        p99_ms=float(summary["p99"]),
        p999_ms=float(summary["p999"]),
        # Java's own start counts in CPU and not in time, so this is an upper bound.
        generator_cpu_share=min(1.0, cpu / (load.total_bytes / 2**20 / rate)),
    )


GENERATORS: dict[str, Callable[[Load], Produced]] = {
    "librdkafka": run_librdkafka,
    "java": run_producer_performance,
}


def build_librdkafka_generator() -> Path:
    """Compiles `produce.c` unless this version of it is compiled already."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    program = BUILD / f"produce-{digest}"
    if not program.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        partial = program.with_suffix(".partial")
        command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", str(SOURCE), "-o", str(partial)]
        subprocess.run([*command, "-lrdkafka"], check=True)
        partial.rename(program)
    return program

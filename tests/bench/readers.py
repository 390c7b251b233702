"""Consumers that throw away what they read, on librdkafka (`consume.c`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.bench.programs import Program

# Fetches as large as Kafka's Java consumer asks for, and a queue that never starves a reader.
SETTINGS = {
    "fetch.message.max.bytes": 1024 * 1024,
    "fetch.max.bytes": 50 * 1024 * 1024,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 64 * 1024,
}


@dataclass(frozen=True)
class Reading:
    """What is to be read of one topic.

    Each of `readers` reads all `records`, or all together do where they `divide` the partitions.
    `from_end` begins at what is the end at the start. `stamped` records give latencies, of which
    those of the first `skip_ms` do not count. `bytes_per_s` holds all together back; 0 does not.
    After `seconds`, unless 0, it ends as it is. `settings` are librdkafka's.
    """

    bootstrap: str
    topic: str
    partitions: int
    records: int
    readers: int = 1
    divide: bool = False
    from_end: bool = False
    stamped: bool = False
    skip_ms: int = 0
    bytes_per_s: int = 0
    seconds: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Consumed:
    """What readers saw together. Latencies are from when a record was due to when it was read.

    `total_bytes` are those of the records' values, uncompressed; `wire_bytes` are all that brokers
    sent.
    """

    records: int
    total_bytes: int
    wire_bytes: int
    seconds: float
    reader_cpu_share: float
    samples: int
    p50_ms: float
    p99_ms: float
    p999_ms: float

    @property
    def mib_per_s(self) -> float:
        """The rate of all readers together, of the records' values."""
        return self.total_bytes / 2**20 / self.seconds if self.seconds else 0.0

    @property
    def wire_mib_per_s(self) -> float:
        """The rate of all that brokers sent."""
        return self.wire_bytes / 2**20 / self.seconds if self.seconds else 0.0


class Consuming:
    """Readers at work. They miss no record that is produced after this object was made."""

    def __init__(self, reading: Reading) -> None:
        settings = {
            **SETTINGS,
            **reading.settings,
            "readers": reading.readers,
            "divide": int(reading.divide),
            "from_end": int(reading.from_end),
            "stamped": int(reading.stamped),
            "skip_ms": reading.skip_ms,
            "bytes_per_s": reading.bytes_per_s,
            "seconds": reading.seconds,
        }
        arguments = (reading.bootstrap, reading.topic, reading.partitions, reading.records)
        self._program = Program("consume", arguments, settings)
        self._program.wait_until_ready()

    def result(self) -> Consumed:
        """Waits until all is read; raises `RuntimeError` if a reader failed."""
        seen = self._program.result()
        return Consumed(
            records=seen["records"],
            total_bytes=seen["bytes"],
            wire_bytes=seen["wire_bytes"],
            seconds=seen["seconds"],
            reader_cpu_share=seen["cpu_seconds"] / seen["seconds"] if seen["seconds"] else 0.0,
            samples=seen["samples"],
            p50_ms=seen["p50_ms"],
            p99_ms=seen["p99_ms"],
            p999_ms=seen["p999_ms"],
        )

    def close(self) -> None:
        """Ends them before their end."""
        self._program.close()


def consume_records(reading: Reading) -> Consumed:
    """Runs readers to their end; returns what they saw."""
    return Consuming(reading).result()

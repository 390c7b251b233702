"""Gigabytes written by idempotent producers while the broker is killed at random points.

Afterwards the log must be, byte for byte, what was acknowledged: once as a client reads it, and
once as `tests.brokers.logscan` finds it on storage, which shares no code with the engine. A
record's bytes follow from the seed, its producer and its number, so nothing but its place is
remembered.
"""

from __future__ import annotations

import math
import random
import struct
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import confluent_kafka

from tests.brokers.logscan import LogScan
from tests.clients.chaos import ChaosError, create_topic
from tests.clients.producers import DELIVERY_SECONDS
from tests.clients.servers import BrokerServer, Supervisor

TOPIC = "volume"
PARTITIONS = 6
PRODUCERS = 2
GROUP = "volume-reader"
# Producer, number.
HEADER = struct.Struct(">IQ")
RECORD_BYTES_MAX = 64 * 1024
POOL_BYTES = 1 << 20
# A producer that waits so long for one acknowledgement will never get it.
STALL_SECONDS = 180.0
MIB = 1 << 20


class Sent:
    """What one producer sends, and the place that each acknowledgement said."""

    def __init__(self, who: int, total_bytes: int, seed: int, pool: bytes) -> None:
        self.who = who
        self._pool = pool
        chance = random.Random(f"{seed} {who}")
        self.sizes = array("I")
        left = total_bytes
        while left > 0:
            # As many records of a few bytes as of many thousand.
            size = HEADER.size + int(math.exp(chance.uniform(0, math.log(RECORD_BYTES_MAX))))
            self.sizes.append(size)
            left -= size
        self.partitions = array("b", [-1]) * len(self.sizes)
        self.offsets = array("q", [-1]) * len(self.sizes)
        self.acked_bytes = 0

    def value(self, number: int) -> bytes:
        """The record of a number."""
        body = self.sizes[number] - HEADER.size
        start = (number * 7919 + self.who * 104_729) % (POOL_BYTES - RECORD_BYTES_MAX)
        return HEADER.pack(self.who, number) + self._pool[start : start + body]

    def acked(self, number: int, partition: int, offset: int) -> None:
        """Notes where a record went. Raises `ChaosError` if it was acknowledged before."""
        if self.partitions[number] >= 0:
            message = f"{self.who}.{number} is acknowledged twice"
            raise ChaosError(message)
        self.partitions[number], self.offsets[number] = partition, offset
        self.acked_bytes += self.sizes[number]


class Run:
    """One run: a supervised broker, producers, and kills in between."""

    def __init__(self, folder: Path, total_bytes: int, kills: int, seed: int) -> None:
        self.broker = BrokerServer(folder, lane={"roll_after_ms": 1000})
        self.supervisor = Supervisor(self.broker)
        chance = random.Random(seed)
        pool = chance.randbytes(POOL_BYTES)
        self.sent = [Sent(who, total_bytes // PRODUCERS, seed, pool) for who in range(PRODUCERS)]
        self.total_bytes = sum(sum(sent.sizes) for sent in self.sent)
        self.kill_points = sorted(chance.uniform(0.01, 0.97) for _ in range(kills))
        self.failures: list[BaseException] = []
        self.changed = threading.Condition()

    def play(self) -> LogScan:
        """Runs to the end; returns the log on storage after a last kill."""
        with self.supervisor:
            create_topic(self.broker.bootstrap, TOPIC, PARTITIONS)
            writers = [
                threading.Thread(target=self._produce, args=(sent,), daemon=True)
                for sent in self.sent
            ]
            for writer in writers:
                writer.start()
            for point in self.kill_points:
                self._wait_until_acked(point * self.total_bytes)
                self.supervisor.kill()
            self._wait_until_acked(self.total_bytes)
            for writer in writers:
                writer.join()
            check_all("a client read", self.sent, self._read())
        return self.broker.scan()

    def _produce(self, sent: Sent) -> None:
        try:
            produce(self.broker.bootstrap, sent, self.changed)
        except BaseException as error:  # raised by the thread that waits
            self.failures.append(error)

    def _wait_until_acked(self, due_bytes: float) -> None:
        acked, moved_at = -1, time.monotonic()
        while (now := sum(sent.acked_bytes for sent in self.sent)) < due_bytes:
            if self.failures:
                raise self.failures[0]
            if now != acked:
                acked, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > STALL_SECONDS:
                message = f"no acknowledgement for {STALL_SECONDS:.0f} s, {now} bytes before"
                raise ChaosError(message)
            with self.changed:
                self.changed.wait(0.02)

    def _read(self) -> Iterator[tuple[int, int, bytes | None]]:
        """Partition, offset and value of every record, as a client reads them."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "check.crcs": True,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, p, 0) for p in range(PARTITIONS)])
        due = sum(len(sent.sizes) for sent in self.sent)
        read_at = time.monotonic()
        try:
            while due > 0:
                for message in consumer.consume(1000, timeout=1.0):
                    if message.error() is not None:
                        raise ChaosError(str(message.error()))
                    yield message.partition() or 0, message.offset() or 0, message.value()
                    due -= 1
                    read_at = time.monotonic()
                if time.monotonic() - read_at > STALL_SECONDS:
                    message = f"{due} records cannot be read"
                    raise ChaosError(message)
        finally:
            consumer.close()


def produce(bootstrap: str, sent: Sent, changed: threading.Condition) -> None:
    """Sends all of it, for as long as it takes. Raises `ChaosError` if a record is given up."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.timeout.ms": DELIVERY_SECONDS * 1000,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20,
            "queue.buffering.max.kbytes": 32 * 1024,
        }
    )

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            raise ChaosError(str(error))
        _, number = HEADER.unpack_from(message.value() or b"")
        sent.acked(number, message.partition() or 0, message.offset() or 0)
        with changed:
            changed.notify_all()

    for number in range(len(sent.sizes)):
        while True:
            try:
                producer.produce(TOPIC, sent.value(number), on_delivery=delivered)
            except BufferError:
                producer.poll(0.1)
            else:
                break
        producer.poll(0)
    producer.flush()


def check_all(
    what: str, sent: Sequence[Sent], records: Iterator[tuple[int, int, bytes | None]]
) -> None:
    """Checks that each record is there once, where its acknowledgement said, and no other.

    `records` are partition, offset and value of all records. Raises `ChaosError`.
    """
    seen = [bytearray(len(producer.sizes)) for producer in sent]
    for partition, offset, value in records:
        place = f"{what}: {partition}@{offset}"
        who, number = HEADER.unpack((value or b"")[: HEADER.size].ljust(HEADER.size, b"\0"))
        if who >= len(sent) or number >= len(seen[who]) or value != sent[who].value(number):
            message = f"{place} is none of the records that were sent"
            raise ChaosError(message)
        acked = (sent[who].partitions[number], sent[who].offsets[number])
        if acked != (partition, offset):
            message = f"{place} is {who}.{number}, whose acknowledgement said {acked}"
            raise ChaosError(message)
        if seen[who][number]:
            message = f"{place} is {who}.{number} once more"
            raise ChaosError(message)
        seen[who][number] = 1
    for who, flags in enumerate(seen):
        if missing := flags.count(0):
            message = f"{what}: {missing} of {who}, the first {flags.index(0)}, are missing"
            raise ChaosError(message)


def run_volume(folder: Path, *, total_bytes: int, kills: int, seed: int) -> dict[str, object]:
    """A whole run with its checks; returns a summary. Raises `ChaosError`."""
    begin = time.monotonic()
    run = Run(folder, total_bytes, kills, seed)
    scan = run.play()
    records = (
        (partition, record.offset, record.value) for partition, record in scan.records(TOPIC)
    )
    check_all("storage", run.sent, records)
    return {
        "mib": round(run.total_bytes / MIB),
        "records": sum(len(sent.sizes) for sent in run.sent),
        "kills": run.supervisor.starts - 1,
        "seed": seed,
        "lanes": len(scan.lanes),
        "seconds": round(time.monotonic() - begin, 1),
    }

"""A broker's memory while clients and disk are at their worst.

Four consumers request everything and read no answer, two hundred connections do nothing, the disk
is slow, and producers push as hard as they can: some give requests up and send them again, one
leaves as soon as it has sent them. The memory that the broker may take meanwhile is the sum of its
budgets (`docs/reference/limits.md`).

    python -m tests.brokers.memory --mib 4096
"""

from __future__ import annotations

import argparse
import contextlib
import json
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.record.default_records import DefaultRecordBatchBuilder

from tests.clients.servers import BrokerServer
from tests.faulty.faults import Faults
from tests.faulty.mount import FaultyFolder
from tests.gateway.raw import Raw

TOPIC = "pushed"
PARTITIONS = 16
RECORD_BYTES = 16 << 10
PRODUCERS = 4
STALLED = 4
IDLE = 200
PRODUCE, FETCH, API_VERSIONS = 0, 1, 18
# What a request of a producer that leaves has: a batch for each of so many partitions.
LEFT_BYTES, LEFT_PARTITIONS = 512 << 10, 4
# A stalled client has this many requests behind the answer that it does not take.
PIPELINED = 16

MIB = 1 << 20
# Each budget, in bytes. Small ones, so that what is in none of them shows soon.
IN_FLIGHT, FETCH_BYTES, HOT, LANE_FILE = 16 * MIB, 16 * MIB, 16 * MIB, 8 * MIB
BLOCKS, CATCH_UP = 8 * MIB, 8 * MIB
# A part of what is in flight.
QUEUE = 8 * MIB
# The file that is written and the one being split, as read and as the object made of it.
SPLITTING = 3 * LANE_FILE
# Frames that are read have room for their last piece; the allocator keeps some of what was freed.
OVERHEAD = 1.5
# Code, stacks, buffers of connections, indexes.
BESIDES = 48 * MIB
BUDGETS = IN_FLIGHT + FETCH_BYTES + CATCH_UP + HOT + BLOCKS + SPLITTING
BUDGET = int(BUDGETS * OVERHEAD) + BESIDES

SECTIONS = {
    "limits": {
        "in_flight_bytes": IN_FLIGHT,
        "in_flight_bytes_per_connection": 4 * MIB,
        "fetch_bytes": FETCH_BYTES,
        "catch_up_fetch_bytes": CATCH_UP,
    },
    "reads": {"block_bytes": BLOCKS},
    "cache": {"hot_bytes": HOT},
    "lane": {
        "file_bytes_first": LANE_FILE,
        "file_bytes_max": LANE_FILE,
        "queue_bytes_max": QUEUE,
    },
}
# A disk of some MiB/s, whose syncs take as long as those of a network file system at its limit.
SLOW_DISK = Faults(delays_s={"write": 0.01, "fsync": 0.05}, names="*.wal")


@dataclass(frozen=True)
class Outcome:
    """The bytes that were sent and acknowledged, and the memory that the broker took."""

    sent: int
    acked: int
    before: int
    peak: int

    @property
    def grown(self) -> int:
        """How much more memory the broker took than when it was idle."""
        return self.peak - self.before


def resident(process: int, field: str) -> int:
    """The memory of a process by the kernel, in bytes: `VmRSS` now, `VmHWM` at most so far."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def idle_connection(port: int) -> Raw:
    """A client that sent an ApiVersions request, and then nothing."""
    client = Raw.plain(port)
    client.send(API_VERSIONS, 0, b"")
    assert client.receive()
    return client


def fetch_everything(offset: int) -> bytes:
    """The body of a Fetch of version 4, as large as may be."""
    name = TOPIC.encode()
    partitions = b"".join(
        struct.pack(">iqi", partition, offset, 1 << 20) for partition in range(PARTITIONS)
    )
    topic = struct.pack(">h", len(name)) + name + struct.pack(">i", PARTITIONS) + partitions
    return struct.pack(">iiiibi", -1, 1000, 1, 50 << 20, 0, 1) + topic


def stall(port: int) -> Raw:
    """A client that requests all records and reads no answer."""
    client = Raw.plain(port)
    for _ in range(PIPELINED):
        client.send(FETCH, 4, fetch_everything(0))
    return client


def produce_batches(batch: bytes) -> bytes:
    """The body of a Produce of version 3 with the same batch for some partitions."""
    name = TOPIC.encode()
    records = b"".join(
        struct.pack(">ii", partition, len(batch)) + batch for partition in range(LEFT_PARTITIONS)
    )
    topic = struct.pack(">h", len(name)) + name + struct.pack(">i", LEFT_PARTITIONS) + records
    return struct.pack(">hhii", -1, 1, 1000, 1) + topic


class Leaver(threading.Thread):
    """Sends a request by a connection of its own and leaves, again and again."""

    def __init__(self, port: int, total: int) -> None:
        super().__init__()
        self._port = port
        self._total = total

    def run(self) -> None:
        """Until so many bytes were sent."""
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, LEFT_BYTES)
        builder.append(0, 0, None, bytes(LEFT_BYTES - 1024), [])
        body = produce_batches(bytes(builder.build()))
        for _ in range(self._total // len(body)):
            client = Raw.plain(self._port)
            client.send(PRODUCE, 3, body)
            client.close()


class Pusher:
    """A producer that sends as fast as the broker reads, and gives a request up after a moment."""

    def __init__(self, bootstrap: str, total: int) -> None:
        self.acked = 0
        self.sent = 0
        self._total = total
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "linger.ms": 5,
                "batch.size": 256 << 10,
                "queue.buffering.max.kbytes": 32 << 10,
                "max.in.flight.requests.per.connection": 100,
                "request.timeout.ms": 500,
                "message.timeout.ms": 5_000,
                "retry.backoff.ms": 10,
            }
        )
        self._thread = threading.Thread(target=self._push)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self.acked += RECORD_BYTES if error is None else 0

    def _push(self) -> None:
        record = bytes(RECORD_BYTES)
        while self.sent < self._total:
            try:
                partition = (self.sent // RECORD_BYTES) % PARTITIONS
                self._producer.produce(
                    TOPIC, record, partition=partition, on_delivery=self._delivered
                )
                self.sent += RECORD_BYTES
            except BufferError:
                self._producer.poll(0.05)
        self._producer.flush(60)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def join(self) -> None:
        """Waits until all was sent, and acknowledged or given up."""
        self._thread.join()


@contextlib.contextmanager
def slow_broker(folder: Path) -> Iterator[tuple[BrokerServer, FaultyFolder]]:
    """A broker on a disk that can be made slow."""
    with FaultyFolder(folder / "dfs", folder / "behind") as disk:
        storage = {"dfs": disk.path}
        with BrokerServer(folder / "broker", storage=storage, **SECTIONS) as broker:
            yield broker, disk


def push(folder: Path, mib: int) -> Outcome:
    """Pushes a broker as hard as it can be; returns how much memory it took."""
    with slow_broker(folder) as (broker, disk), ExitStack() as clients:
        assert broker.process is not None
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
            made.result()
        port = int(broker.bootstrap.rpartition(":")[2])
        for _ in range(IDLE):
            clients.callback(idle_connection(port).close)
        pid = broker.process.pid
        before = resident(pid, "VmRSS")
        # Something to ask for.
        first = Pusher(broker.bootstrap, 2 * FETCH_BYTES)
        first.start()
        first.join()
        for _ in range(STALLED):
            clients.callback(stall(port).close)
        disk.fail(SLOW_DISK)
        leaver = Leaver(port, mib * MIB // 2)
        leaver.start()
        pushers = [Pusher(broker.bootstrap, mib * MIB // PRODUCERS) for _ in range(PRODUCERS)]
        for pusher in pushers:
            pusher.start()
        for pusher in pushers:
            pusher.join()
        leaver.join()
        disk.heal()
        every = [first, *pushers]
        sent, acked = (
            sum(getattr(account, what) for account in every) for what in ("sent", "acked")
        )
        return Outcome(sent, acked, before, resident(pid, "VmHWM"))


def main() -> None:
    """Runs the test by hand, for as long as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=4096, help="how much is pushed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = push(Path(folder), given.mib)
    in_mib = {
        name: round(value / MIB, 1)
        for name, value in (
            ("sent", outcome.sent),
            ("acked", outcome.acked),
            ("before", outcome.before),
            ("peak", outcome.peak),
            ("grown", outcome.grown),
            ("budget", BUDGET),
        )
    }
    sys.stdout.write(json.dumps(in_mib) + "\n")
    if outcome.grown > BUDGET:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

"""A small cluster's storage, as this release writes it, to be committed as a sample.

`python -m tests.brokers.sample_writer <folder>` writes it; that is done once for a new version of
a stored format, into a folder named after it (`samples/v1`), and never to an existing sample.

Two brokers wrote it. The first was killed, so its lane has a SEAL; its records were split, so that
only an index is left of its file. The second one was killed too, with records, usage counters and
an install record in its lane.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer, Producer

from brokers import Broker
from tests.brokers.lanes import USAGE
from tests.brokers.logscan import LogScan

TOPIC = "orders"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
EACH = 5
LANE = {"file_bytes_first": 65536, "file_bytes_max": 65536, "roll_after_ms": 600_000}


def expected(writer: int) -> list[bytes]:
    """The values that were sent to each of the two brokers, in order."""
    return [f"{writer} {codec} {n}".encode() for codec in CODECS for n in range(EACH)]


def produce(bootstrap: str, writer: int) -> None:
    """Sends a batch in every codec."""
    for codec in CODECS:
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec}
        producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 50})
        for n in range(EACH):
            producer.produce(TOPIC, f"{writer} {codec} {n}", partition=0)
        producer.flush()


def consume(bootstrap: str, count: int, group: str) -> list[bytes]:
    """Reads so many records from the start, and commits."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    values: list[bytes] = []
    while len(values) < count:
        messages = consumer.consume(count - len(values), timeout=1)
        values += [message.value() for message in messages if message.error() is None]
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def write_sample(folder: Path) -> None:
    """Writes the sample into a folder that does not exist yet."""
    broker = Broker(folder, lane=LANE, topics={"offsets_partitions": 1})
    broker.start()
    produce(broker.bootstrap, 1)
    broker.crash()
    broker.restart()
    produce(broker.bootstrap, 2)
    consume(broker.bootstrap, 2 * len(expected(1)), "sample")
    while not is_complete(folder):
        broker.ended(0.1)
    broker.crash()
    close_store(folder)


def close_store(folder: Path) -> None:
    """Makes the metadata store one file: the write-ahead log goes into it."""
    with closing(sqlite3.connect(folder / "metadata.sqlite")) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.execute("PRAGMA journal_mode = DELETE")


def scan_copy(folder: Path) -> LogScan:
    """Scans a copy of the storage, while a broker uses it."""
    copy = folder.with_name(f"{folder.name}-copy")
    try:
        shutil.copytree(folder, copy)
        return LogScan(copy / "dfs", copy / "bucket", copy / "metadata.sqlite")
    finally:
        shutil.rmtree(copy)


def is_complete(folder: Path) -> bool:
    """Whether the first lane was split and the second holds usage counters."""
    scan = scan_copy(folder)
    kinds = {block.kind for block in scan.lanes[2].blocks}
    return not scan.lanes[1].blocks and USAGE in kinds


if __name__ == "__main__":
    write_sample(Path(sys.argv[1]))

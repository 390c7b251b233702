"""A real broker, its real client and the agent: what is read after a sleep is what was billed.

The rule of retention is made strict while the cluster sleeps, and loose again before it wakes.
"""

import subprocess
import sys
import time
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from brokers.metadata import CellStore
from metering.agent.agent import Agent, Share
from metering.agent.cluster import Cell
from metering.agent.files import UsageWriter
from metering.agent.metrics import Metrics
from metering.agent.progress import ProgressFolder
from metering.agent.source import CellSource
from metering.events.records import decode_usage
from metering.events.store import FolderUsageStore, list_manifests, read_manifest
from metering.events.times import HOUR_MS, MINUTE_MS
from tests.metering.agent.processes import CELL, CLUSTER, make_broker, make_spec, wait_until
from tests.metering.proof.fetcher import Fetcher, next_offset

TOPIC = "orders"
PLACE = TopicPartition(TOPIC, 0)
HOLD = """
import json, sqlite3, sys
file, pattern, ms = sys.argv[1:]
store = sqlite3.connect(file)
((key, value),) = store.execute("SELECT key, value FROM entry WHERE key LIKE ?", [pattern])
record = json.loads(value)
record["retention"]["since_ms"] -= int(ms)
new = json.dumps(record).encode()
store.execute("UPDATE entry SET value = ? WHERE key = ?", [new, key])
store.commit()
"""
STRICT, LOOSE = {"retention.ms": str(HOUR_MS)}, {"retention.ms": "-1"}


class Sleeper:
    """A cluster with an old record and a young one, each in a segment of its own, and an agent."""

    def __init__(self, folder, broker):
        self.folder, self.broker = folder, broker
        make_spec(folder)
        self.metadata = CellStore(folder / "metadata.sqlite").cluster(CLUSTER)
        self.metadata.create_topic(TOPIC, partitions=1, configs=LOOSE)
        assert self.metadata.wait_led(TOPIC, 60)
        self.now_ms = time.time_ns() // 1_000_000
        self.store = FolderUsageStore(folder / "usage")
        source = CellSource(
            metadata=str(folder / "metadata.sqlite"),
            dfs=folder / "dfs",
            bucket=str(folder / "bucket"),
        )
        metrics = Metrics(CELL)
        cell = Cell(CELL, source, self.store, lambda: self.now_ms, metrics.count_error)
        writer = UsageWriter(self.store, CELL, "agent", lambda: f"{self.now_ms:016x}")
        progress = ProgressFolder(folder / "progress")
        self.agent = Agent(cell, writer, progress, metrics, Share())
        self.reader = source.reader
        for count, age_ms in ((1, 2 * HOUR_MS), (2, 0)):
            self.produce(age_ms)
            wait_until(partial(self.has_segments, count), "it is split")

    def has_segments(self, count):
        return len(self.segments()) == count

    def produce(self, age_ms):
        """Writes a record that is so old."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        producer.produce(TOPIC, b"x" * 1000, partition=0, timestamp=self.now_ms - age_ms)
        assert producer.flush(60) == 0

    def segments(self):
        """Bytes of the topic's segments, as manifests have them."""
        (topic,) = (topic for topic in self.metadata.topics_history() if topic.name == TOPIC)
        stored = [
            partition
            for partition in self.reader.manifests(CLUSTER, {})
            if partition.topic_id == topic.id
        ]
        return [segment.bytes for partition in stored for segment in partition.segments]

    def hold(self, minutes):
        """Moves the last change of the rule into the past, by so many minutes.

        In a process of its own: a second SQLite in a process breaks the locks of the first.
        """
        file = self.folder / "metadata.sqlite"
        key = f"%{CLUSTER}/topic/{TOPIC}"
        command = [sys.executable, "-c", HOLD, str(file), key, str(minutes * MINUTE_MS)]
        subprocess.run(command, check=True)

    def billed_bytes(self, hours):
        """What is billed for a minute of the last hour, once so many hours have passed."""
        self.now_ms += hours * HOUR_MS
        self.agent.run_pass()
        rows = {}
        for key in list_manifests(self.store, CELL, since_ms=0, until_ms=self.now_ms + HOUR_MS):
            manifest = read_manifest(self.store, key, verify=True)
            for row in decode_usage(self.store.get(manifest.key)).to_pylist():
                if row["meter"] == "storage_byte_minutes" and row["billed"]:
                    rows[row["window_start_ms"]] = row
        last = rows[max(rows)]
        return last["quantity"] * MINUTE_MS // (last["window_end_ms"] - last["window_start_ms"])

    def readable_bytes(self):
        """Bytes of the batches that a client can read."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "g"})
        offset, end = consumer.get_watermark_offsets(PLACE, timeout=60)
        consumer.close()
        read = 0
        with Fetcher(self.broker.bootstrap) as fetcher:
            while offset < end:
                batches = fetcher.fetch(TOPIC, 0, offset, 11)
                read += len(batches)
                offset = next_offset(batches)
        return read


@pytest.fixture
def sleeper(tmp_path):
    with make_broker(tmp_path / "cell") as broker:
        yield Sleeper(tmp_path / "cell", broker)


@pytest.mark.parametrize(("held_minutes", "kept"), [(6, 1), (0, 2)])
def test_what_is_read_after_a_sleep_is_what_was_billed(sleeper, held_minutes, kept):
    """A rule that held for more than five minutes took the old record; a mistake took none."""
    old, young = sleeper.segments()
    expected = young if kept == 1 else old + young
    assert sleeper.readable_bytes() == old + young
    sleeper.broker.stop()
    sleeper.metadata.alter_topic_configs(TOPIC, STRICT)
    sleeper.hold(held_minutes)
    sleeper.metadata.alter_topic_configs(TOPIC, LOOSE)
    assert sleeper.billed_bytes(hours=3) == expected
    sleeper.broker.restart()
    assert sleeper.readable_bytes() == expected
    assert sleeper.billed_bytes(hours=3) == expected


def test_a_rule_that_still_holds_bills_what_is_read_too(sleeper):
    _, young = sleeper.segments()
    sleeper.broker.stop()
    sleeper.metadata.alter_topic_configs(TOPIC, STRICT)
    sleeper.hold(6)
    sleeper.broker.restart()
    assert sleeper.readable_bytes() == young

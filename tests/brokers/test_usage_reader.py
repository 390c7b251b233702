"""What clusters used, read from their storage with Python while brokers write it."""

import struct
from collections import Counter

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from brokers import Broker
from brokers.errors import StorageError
from brokers.metadata import CellStore
from brokers.usage import EGRESS, INGRESS, SealedEnd, UsageReader
from tests.brokers.logscan import LogScan
from tests.supervisor.run import wait_until

CLUSTER = "local"
TOPIC = "orders"
RECORDS = 200
# Far beyond what anything here takes; a test that reaches it fails.
TIMEOUT_S = 60
FORMATS = {
    "file": "Q",
    "sequence": "Q",
    "written_at_ms": "q",
    "topic": "I",
    "partition": "i",
    "principal": "I",
    "meter": "B",
    "quantity": "Q",
    "cumulative": "Q",
}


def rows_of(reading):
    """The rows of a reading, as dictionaries."""
    columns = {
        name: struct.unpack(f"<{reading.rows}{form}", getattr(reading, name))
        for name, form in FORMATS.items()
    }
    lines = zip(*columns.values(), strict=True)
    rows = [dict(zip(columns, values, strict=True)) for values in lines]
    for row in rows:
        row["topic"] = reading.topics[row["topic"]]
        row["principal"] = reading.principals[row["principal"]]
    return rows


def reader_of(broker):
    return UsageReader(dfs=broker.folder / "dfs", bucket=broker.folder / "bucket")


def metadata_of(broker):
    return CellStore(broker.folder / "metadata.sqlite").cluster(CLUSTER)


def produce(broker, count=RECORDS):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "log_level": 0})
    for number in range(count):
        producer.produce(TOPIC, f"value {number}".encode(), partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def consume(broker, count=RECORDS):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    assert len(consumer.consume(count, timeout=TIMEOUT_S)) == count
    consumer.close()


def topic_id(broker):
    (topic,) = [topic for topic in metadata_of(broker).topics_history() if topic.name == TOPIC]
    return topic.id


@pytest.fixture
def broker():
    with Broker(topics={"auto_create": False}) as broker:
        metadata_of(broker).create_topic(TOPIC, partitions=1)
        assert metadata_of(broker).wait_led(TOPIC, TIMEOUT_S)
        yield broker


def test_usage_of_a_closed_lane_is_what_the_log_holds(broker):
    produce(broker)
    consume(broker)
    identity = topic_id(broker)
    (before,) = metadata_of(broker).lanes()
    assert (before.incarnation, before.state, before.sealed_end) == (1, "live", None)
    broker.stop()
    (lane,) = metadata_of(broker).lanes()
    assert lane.state == "closed"
    reading = reader_of(broker).read_lane(CLUSTER, 1, sealed_end=lane.sealed_end)
    assert reading.ended
    assert not reading.more
    assert reading.last_sequence == lane.sealed_end.sequence
    assert (reading.unsplit_since_ms, reading.gap) == (None, None)
    assert reading.covered_until_ms >= lane.started_at_ms
    rows = [row for row in rows_of(reading) if row["topic"] == identity]
    sums: Counter[int] = Counter()
    for row in rows:
        sums[row["meter"]] += row["quantity"]
        assert row["principal"] == "User:ANONYMOUS"
        assert row["written_at_ms"] >= lane.started_at_ms
    folder = broker.folder
    scan = LogScan(folder / "dfs", folder / "bucket", folder / "metadata.sqlite", CLUSTER)
    stored = sum(batch.size for batch in scan.batches(TOPIC, 0))
    assert sums[INGRESS] == stored
    # Batches are read whole.
    assert sums[EGRESS] >= stored
    assert max(row["cumulative"] for row in rows) == sums[EGRESS]


def test_lane_is_read_on_while_it_is_written_and_after_a_takeover(broker):
    reader = reader_of(broker)
    rows = []
    after = {"after_sequence": 0, "after_file": 0}
    for _ in range(5):
        produce(broker, 10)
        reading = reader.read_lane(CLUSTER, 1, **after)
        after = {"after_sequence": reading.last_sequence, "after_file": reading.last_file}
        rows += rows_of(reading)
    broker.crash()
    broker.restart()
    lane = metadata_of(broker).lanes()[0]
    assert lane.state == "sealed"
    reading = reader.read_lane(CLUSTER, 1, **after, sealed_end=lane.sealed_end)
    assert reading.ended
    rows += rows_of(reading)
    whole = reader_of(broker).read_lane(CLUSTER, 1, sealed_end=lane.sealed_end)
    assert rows == rows_of(whole)
    none_of_it = reader_of(broker).read_lane(CLUSTER, 1, sealed_end=SealedEnd(file=0, sequence=1))
    assert (none_of_it.rows, none_of_it.ended) == (0, True)


def test_manifests_say_what_is_kept(broker):
    reader = reader_of(broker)
    assert reader.manifests(CLUSTER, {}) == []
    produce(broker)
    identity = topic_id(broker)
    broker.stop()
    (manifest,) = reader.manifests(CLUSTER, {})
    assert (manifest.topic_id, manifest.partition, manifest.covered_end) == (identity, 0, RECORDS)
    reading = reader.read_lane(CLUSTER, 1)
    ingress = [row for row in rows_of(reading) if row["meter"] == INGRESS]
    (segment,) = manifest.segments
    assert segment.bytes == sum(row["quantity"] for row in ingress)
    assert segment.written_at_ms == max(row["written_at_ms"] for row in ingress)
    assert manifest.dropped == ()
    assert reader.manifests(CLUSTER, {(identity, 0): manifest.name}) == []


def test_indexes_go_but_for_the_last(broker):
    for _ in range(2):
        produce(broker)
        broker.stop()
        broker.restart()
    reader = reader_of(broker)
    first = reader.lanes(CLUSTER)[0]
    assert first.incarnation == 1
    assert reader.lanes("another") == []
    ends = {lane.incarnation: lane.sealed_end for lane in metadata_of(broker).lanes()}
    reading = reader.read_lane(CLUSTER, 1, sealed_end=ends[1])
    dropped = reader.drop_indexes(CLUSTER, 1, below_file=reading.last_file + 1)
    assert dropped == len(first.indexes) - 1
    again = reader.read_lane(CLUSTER, 1, sealed_end=ends[1])
    assert again.gap is None or again.gap[0] == 1


def test_a_lane_says_that_it_is_recorded_once_its_records_are_split(broker):
    produce(broker)
    reader = reader_of(broker)
    assert not reader.mark_metered(CLUSTER, 1)
    broker.stop()
    broker.restart()
    wait_until(lambda: reader.mark_metered(CLUSTER, 1), "its records are split", TIMEOUT_S)
    (mark,) = (broker.folder / "dfs").rglob("METERED")
    assert mark.read_bytes() == b""
    assert not reader.mark_metered(CLUSTER, 99)


def test_damage_names_the_file(broker):
    produce(broker)
    broker.stop()
    (index,) = sorted((broker.folder / "dfs").rglob("*.idx"))
    raw = bytearray(index.read_bytes())
    raw[-1] ^= 1
    index.write_bytes(raw)
    with pytest.raises(StorageError, match=r"0{12}\.idx is damaged"):
        reader_of(broker).read_lane(CLUSTER, 1)

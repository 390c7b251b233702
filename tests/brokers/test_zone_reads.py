"""Clients that name their zone read what segments hold from a broker there (KIP-392)."""

import contextlib
import random
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers import Broker
from brokers.metadata import CellStore
from tests.gateway.raw import metric
from tests.peer.kafka import java_tool
from tests.supervisor.run import wait_until

TOPIC = "orders"
ZONES = ("a", "b")
VALUE_BYTES = 100_000
# A client is sent to another zone for 32 MiB; most of the rest comes from memory.
RECORDS = 600
TIMEOUT_S = 60


@pytest.fixture
def brokers(tmp_path):
    """A broker in each zone. The first one leads the topic."""
    CellStore(tmp_path / "metadata.sqlite").cluster("local").create(scale=len(ZONES))
    with contextlib.ExitStack() as stack:
        running = []
        for slot, zone in enumerate(ZONES):
            broker = Broker(
                tmp_path,
                broker={"node_id": slot, "rack": zone},
                listener={
                    "brokers": "127.0.0.1:0",
                    "link_secret": "5e" * 32,
                    "metrics": "127.0.0.1:0",
                },
                lane={"file_bytes_first": 4 << 20, "file_bytes_max": 4 << 20},
                cache={"hot_bytes": 4 << 20},
            )
            broker.start()
            stack.callback(broker.close)
            running.append(broker)
        yield running


def make_topic(broker, replicas):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wait_until(
        lambda: len(admin.list_topics(timeout=TIMEOUT_S).brokers) == len(ZONES), "both are there"
    )
    topic = NewTopic(TOPIC, 1, replica_assignment=[list(range(replicas))])
    (made,) = admin.create_topics([topic]).values()
    made.result(TIMEOUT_S)


def produce(broker, values):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 8})
    failures = []

    def note(error, _message):
        if error:
            failures.append(error)

    for value in values:
        producer.produce(TOPIC, value, on_delivery=note)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert not failures


def handed_out(broker):
    """The bytes of records that a broker has handed to clients."""
    name = f'kafka_server_brokertopicmetrics_bytesout_total{{topic="{TOPIC}"}}'
    return metric(broker.metrics_address, name)


def read(broker, zone, count):
    """Reads values from the beginning on, and yields each."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "client.rack": zone,
            "auto.offset.reset": "error",
            "fetch.error.backoff.ms": 50,
        }
    )
    with contextlib.closing(consumer):
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        for _ in range(count):
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            assert message.error() is None
            yield message.value()


@pytest.fixture
def values():
    draw = random.Random(7)
    return [draw.randbytes(VALUE_BYTES) for _ in range(RECORDS)]


def wait_split(broker):
    wait_until(
        lambda: metric(broker.metrics_address, "freshet_lane_unsplit_bytes") < 8 << 20,
        "nearly all is in segments",
    )


def test_a_reader_reads_segments_in_its_zone_and_the_rest_from_the_leader(brokers, values):
    leader, other = brokers
    make_topic(leader, replicas=2)
    produce(leader, values)
    wait_split(leader)
    more = [f"more {number}".encode() for number in range(20)]
    reading = read(leader, "b", RECORDS + len(more))
    assert [next(reading) for _ in values] == values
    handed = [handed_out(broker) for broker in brokers]
    assert sum(handed) == pytest.approx(RECORDS * VALUE_BYTES, rel=0.01)
    assert handed[1] > 40 << 20
    # At the end it reads from the leader, so it need not wait until records are in segments.
    begun = time.monotonic()
    produce(leader, more)
    assert list(reading) == more
    assert time.monotonic() - begun < 5
    assert handed_out(other) == handed[1]


def test_kafkas_consumer_reads_segments_in_its_zone(brokers, values):
    leader, other = brokers
    make_topic(leader, replicas=2)
    produce(leader, values)
    wait_split(leader)
    done = java_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", leader.bootstrap, "--topic", TOPIC, "--from-beginning"),
        *("--max-messages", str(RECORDS), "--command-property", "client.rack=b"),
        *("--formatter-property", "print.value=false", "--formatter-property", "print.offset=true"),
        heap="256m",
    )
    assert done.stdout.split() == [f"Offset:{offset}" for offset in range(RECORDS)]
    assert handed_out(other) > 40 << 20


@pytest.mark.parametrize(("zone", "replicas"), [("", 2), ("a", 2), ("c", 2), ("b", 1)])
def test_others_read_from_the_leader_alone(brokers, values, zone, replicas):
    """Who says no other zone, one without a broker, or where metadata name no replica."""
    leader, other = brokers
    make_topic(leader, replicas)
    produce(leader, values)
    wait_split(leader)
    assert list(read(leader, zone, RECORDS)) == values
    assert handed_out(other) == 0


def test_a_reader_goes_on_where_its_zone_ends(brokers, values):
    leader, other = brokers
    make_topic(leader, replicas=2)
    produce(leader, values)
    wait_split(leader)
    reading = read(leader, "b", RECORDS)
    first = [next(reading) for _ in range(RECORDS // 4)]
    other.crash()
    assert [*first, *reading] == values

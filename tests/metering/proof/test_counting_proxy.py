"""The proof's own instruments: they agree with each other on a broker that nobody kills."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from threading import Semaphore, Thread

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.logscan import read_metadata
from tests.clients.servers import BrokerServer
from tests.metering.proof import frames
from tests.metering.proof.counting_proxy import CountingProxy, total
from tests.metering.proof.fetcher import Fetcher, FetchError
from tests.metering.proof.stored import by_topic_and_principal, counted_egress, stored_bytes
from tests.ports import free_ports

PARTITIONS = 2
RECORDS = 400
TOPIC = "weighed"
USERS = ("alice", "bob")
WAIT_S = 60.0


class Counting:
    """A broker whose clients all come through the proxy, by its advertised address."""

    def __init__(self, folder, **listener):
        (port,) = free_ports(1)
        self.server = BrokerServer(
            folder,
            listener={"advertised": f"127.0.0.1:{port}", **listener},
            lane={"roll_after_ms": 500},
            security={
                "super_users": ["User:alice", "User:bob", "User:ANONYMOUS"],
                "users": [{"name": user, "password": "secret"} for user in USERS],
            },
        )
        self.proxy = CountingProxy(self.server.bootstrap, port)
        self._stop = contextlib.ExitStack()

    def __enter__(self):
        self._stop.enter_context(self.server)
        self._stop.enter_context(self.proxy)
        return self

    def __exit__(self, *given):
        self.stop()

    def stop(self):
        """Ends both, so that storage can be scanned. A second time does nothing."""
        self._stop.close()

    def librdkafka(self, user):
        return {
            "bootstrap.servers": self.proxy.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": "secret",
        }


@pytest.fixture
def counting(tmp_path):
    with Counting(tmp_path, sasl=["PLAIN", "SCRAM-SHA-512"]) as made:
        yield made


@pytest.fixture
def open_counting(tmp_path):
    with Counting(tmp_path) as made:
        yield made


def create_topic(settings):
    admin = AdminClient(settings)
    (outcome,) = admin.create_topics([NewTopic(TOPIC, PARTITIONS)]).values()
    outcome.result()


def id_of_topic(server):
    records = read_metadata(server.folder / "metadata.sqlite", "local").items()
    (topic_id,) = [record["id"] for key, record in records if key == f"topic/{TOPIC}"]
    return uuid.UUID(topic_id)


def value(user, number):
    return f"User:{user} {number} ".encode() + b"x" * (number % 700)


def produce(settings, user="ANONYMOUS", **more):
    producer = Producer({**settings, "linger.ms": 5, **more})
    for number in range(RECORDS):
        producer.produce(TOPIC, value(user, number), partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def read_librdkafka(settings, group):
    consumer = Consumer({**settings, "group.id": group, "enable.auto.commit": False})
    consumer.assign([Partition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    left = 2 * RECORDS
    while left:
        left -= len([m for m in consumer.consume(left, timeout=1.0) if m.error() is None])
    consumer.close()


def read_kafka_python(address, user):
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=user,
        sasl_plain_password="secret",
        auto_offset_reset="earliest",
    )
    consumer.assign([kafka.TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)])
    left = 2 * RECORDS
    while left:
        left -= sum(len(batch) for batch in consumer.poll(timeout_ms=1000).values())
    consumer.close()


async def copy_aiokafka(address, user):
    settings = {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": user,
        "sasl_plain_password": "secret",
    }
    producer = AIOKafkaProducer(**settings, linger_ms=5, compression_type="lz4")
    await producer.start()
    sent = [
        await producer.send(TOPIC, value(user, number), partition=number % PARTITIONS)
        for number in range(RECORDS)
    ]
    await asyncio.gather(*sent)
    await producer.stop()
    consumer = AIOKafkaConsumer(**settings, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)])
    left = 2 * RECORDS
    while left:
        left -= sum(len(batch) for batch in (await consumer.getmany(timeout_ms=1000)).values())
    await consumer.stop()


def test_proxy_scan_and_broker_count_the_same_bytes(counting):
    alice = counting.librdkafka("alice")
    create_topic(alice)
    produce(alice, "alice", **{"compression.codec": "zstd"})
    asyncio.run(copy_aiokafka(counting.proxy.address, "bob"))
    read_librdkafka(alice, "readers")
    read_kafka_python(counting.proxy.address, "bob")
    counting.stop()

    scan = counting.server.scan()
    ids = {name: topic.id.hex for name, topic in scan.topics.items()}
    seen = counting.proxy.seen
    assert seen.errors == []
    written = by_topic_and_principal(stored_bytes(scan))
    assert set(written) == {(ids[TOPIC], "User:alice"), (ids[TOPIC], "User:bob")}
    assert total(seen.acked, ids) == written
    handed = total(seen.handed, ids)
    assert handed == counted_egress(scan)
    # Each of three readers was handed all of it; those of librdkafka and kafka-python once each.
    whole = sum(written.values())
    assert handed[ids[TOPIC], "User:alice"] >= whole
    assert handed[ids[TOPIC], "User:bob"] >= 2 * whole


def test_every_fetch_version_is_weighed_alike(open_counting):
    settings = {"bootstrap.servers": open_counting.proxy.address}
    create_topic(settings)
    produce(settings)
    consumer = Consumer({**settings, "group.id": "ends"})
    ends = [
        consumer.get_watermark_offsets(Partition(TOPIC, partition))[1]
        for partition in range(PARTITIONS)
    ]
    consumer.close()
    topic_id = id_of_topic(open_counting.server)
    weights = {}
    for version in frames.FETCH_VERSIONS:
        name = topic_id if version >= frames.TOPIC_IDS else TOPIC
        with Fetcher(open_counting.proxy.address) as fetcher:
            weights[version] = [
                fetcher.weigh(name, partition, end, version) for partition, end in enumerate(ends)
            ]
    open_counting.stop()

    scan = open_counting.server.scan()
    stored = stored_bytes(scan)
    sizes = [
        sum(size for place, size in stored.items() if place.partition == partition)
        for partition in range(PARTITIONS)
    ]
    assert weights == dict.fromkeys(frames.FETCH_VERSIONS, sizes)
    ids = {TOPIC: topic_id.hex}
    expected = {(topic_id.hex, "User:ANONYMOUS"): sum(sizes) * len(frames.FETCH_VERSIONS)}
    assert total(open_counting.proxy.seen.handed, ids) == expected
    assert counted_egress(scan) == expected
    assert open_counting.proxy.seen.errors == []


def test_a_clean_stop_counts_all_that_it_handed_out(open_counting):
    address = open_counting.proxy.address
    create_topic({"bootstrap.servers": address})
    produce({"bootstrap.servers": address})
    topic_id = id_of_topic(open_counting.server)
    reads = Semaphore(0)

    def read(partition):
        """Reads the partition over and over, until the broker is gone."""
        with contextlib.suppress(OSError, FetchError), Fetcher(address) as fetcher:
            while True:
                fetcher.weigh(topic_id, partition, RECORDS // PARTITIONS, frames.FETCH_VERSIONS[-1])
                reads.release()

    readers = [Thread(target=read, args=[n % PARTITIONS], daemon=True) for n in range(6)]
    for reader in readers:
        reader.start()
    assert all(reads.acquire(timeout=WAIT_S) for _ in range(100))
    open_counting.server.stop()
    for reader in readers:
        reader.join(WAIT_S)
    open_counting.stop()

    scan = open_counting.server.scan()
    handed = total(open_counting.proxy.seen.handed, {TOPIC: topic_id.hex})
    assert handed == counted_egress(scan)
    assert open_counting.proxy.seen.errors == []

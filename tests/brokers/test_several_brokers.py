"""A cluster of three brokers, as clients see it while one of them dies."""

import threading
import time
from collections import Counter
from itertools import chain, pairwise

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers import Broker
from brokers.metadata import CellStore
from tests.supervisor.run import wait_until

CLUSTER = "local"
SLOTS = 3
TOPIC = "orders"
PARTITIONS = 12
# Far beyond what anything here takes; a test that reaches it fails.
TIMEOUT_S = 60
# What a client may wait at most where a process was killed, on a machine that does much else. The
# bench of takeovers has the figure that counts.
GAP_MAX_S = 5
KAFKA_CLIENT = {"metadata.max.age.ms": 1_000, "reconnect.backoff.max.ms": 200}


def start_broker(folder, slot):
    """A broker of the cluster in the folder; the caller closes it."""
    broker = Broker(
        folder,
        broker={"node_id": slot},
        listener={"brokers": "127.0.0.1:0", "link_secret": "5e" * 32},
        topics={"default_replication_factor": 3},
    )
    broker.start()
    return broker


@pytest.fixture
def brokers(tmp_path):
    """Slot → its broker. One of them, the controller, leads all partitions of the topic."""
    CellStore(tmp_path / "metadata.sqlite").cluster(CLUSTER).create(scale=SLOTS)
    running = {}
    try:
        for slot in range(SLOTS):
            running[slot] = start_broker(tmp_path, slot)
        wait_until(
            lambda: all(len(nodes_of(broker)) == SLOTS for broker in running.values()),
            "each broker knows the others",
        )
        admin = AdminClient({"bootstrap.servers": running[0].bootstrap})
        for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS)]).values():
            created.result(TIMEOUT_S)
        yield running
    finally:
        for broker in running.values():
            broker.close()


def metadata_of(broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    return admin.list_topics(timeout=TIMEOUT_S)


def nodes_of(broker):
    return {(node.host, node.port) for node in metadata_of(broker).brokers.values()}


def topics_of(broker):
    return metadata_of(broker).topics


def leaders_of(broker):
    """How many partitions of the topic each node leads."""
    partitions = topics_of(broker)[TOPIC].partitions.values()
    return Counter(partition.leader for partition in partitions)


def leader_of_all(brokers):
    """The node that leads the whole topic, once each broker says so."""
    said: list[Counter[int]] = []

    def is_known():
        said[:] = [leaders_of(broker) for broker in brokers.values() if TOPIC in topics_of(broker)]
        return len(said) == SLOTS and all(leaders == said[0] for leaders in said)

    wait_until(is_known, "each broker knows who leads")
    ((leader, count),) = said[0].items()
    assert count == PARTITIONS
    return leader


class Load:
    """Produces numbered records to all partitions, each with all acks, until it is ended."""

    def __init__(self, bootstrap):
        self.acked = []
        self.moments = []
        self.errors = []
        self._producer = Producer(
            {
                **KAFKA_CLIENT,
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 0,
            }
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        number = 0
        while not self._ending.wait(0.002):
            self._producer.produce(
                TOPIC, str(number), partition=number % PARTITIONS, on_delivery=self._delivered
            )
            self._producer.poll(0)
            number += 1
        self._producer.flush(TIMEOUT_S)

    def _delivered(self, error, message):
        if error is None:
            self.acked.append(int(message.value()))
            self.moments.append(time.monotonic())
        else:
            self.errors.append(error)

    def end(self):
        self._ending.set()
        self._thread.join()


def read_all(bootstrap):
    """Partition → the numbers in it, in their order."""
    consumer = Consumer(
        {
            **KAFKA_CLIENT,
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "enable.partition.eof": True,
        }
    )
    places = [TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in range(PARTITIONS)]
    consumer.assign(places)
    numbers: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
    ended: set[int] = set()
    try:
        while len(ended) < PARTITIONS:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            if message.error():
                ended.add(message.partition())
            else:
                numbers[message.partition()].append(int(message.value()))
    finally:
        consumer.close()
    return numbers


def address_of(broker):
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


def test_clients_see_every_broker_and_go_to_the_leader(brokers):
    addresses = {address_of(broker) for broker in brokers.values()}
    leader = leader_of_all(brokers)
    for broker in brokers.values():
        assert nodes_of(broker) == addresses
        assert metadata_of(broker).controller_id == leader
    # One that leads nothing is enough to begin with.
    other = brokers[(leader + 1) % SLOTS]
    load = Load(other.bootstrap)
    wait_until(lambda: len(load.acked) > 100, "records are produced")
    load.end()
    assert not load.errors
    assert sorted(chain(*read_all(other.bootstrap).values())) == sorted(load.acked)


def test_survivors_take_over_from_a_killed_broker_and_nothing_is_lost(brokers):
    bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
    dead = leader_of_all(brokers)
    survivors = {0, 1, 2} - {dead}
    survivor = brokers[min(survivors)]
    load = Load(bootstrap)
    try:
        wait_until(lambda: len(load.acked) > 200, "records are produced")
        killed_at = time.monotonic()
        brokers[dead].crash()
        wait_until(lambda: set(leaders_of(survivor)) == survivors, "the survivors lead")
        assert min(leaders_of(survivor).values()) >= PARTITIONS // 3
        assert metadata_of(survivor).controller_id in survivors
        wait_until(lambda: load.moments[-1] > killed_at + 1, "records are produced again")
        # The slot has a broker again, which leads nothing and disturbs nobody.
        brokers[dead].restart()
        wait_until(lambda: len(nodes_of(survivor)) == SLOTS, "it is one of them again")
        more = len(load.acked) + 200
        wait_until(lambda: len(load.acked) > more, "records are produced still")
        assert set(leaders_of(survivor)) == survivors
    finally:
        load.end()
    assert not load.errors
    gap_s = max(later - earlier for earlier, later in pairwise(load.moments))
    assert gap_s < GAP_MAX_S
    numbers = read_all(bootstrap)
    assert sorted(chain(*numbers.values())) == sorted(load.acked)
    assert all(read == sorted(read) for read in numbers.values())

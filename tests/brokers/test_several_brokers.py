"""A cluster of three brokers, as clients see it while one of them dies."""

import contextlib
import threading
import time
from collections import Counter
from itertools import chain, pairwise

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)

from brokers import Broker
from brokers.metadata import CellStore
from tests.gateway.raw import metric
from tests.supervisor.run import wait_until

CLUSTER = "local"
ACTIVE_CONTROLLERS = "kafka_controller_kafkacontroller_activecontrollercount"
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
        listener={
            "brokers": "127.0.0.1:0",
            "link_secret": "5e" * 32,
            "metrics": "127.0.0.1:0",
        },
        topics={"default_replication_factor": 3},
    )
    broker.start()
    return broker


@contextlib.contextmanager
def running_brokers(folder):
    """Slot → its broker, once each of them knows the others."""
    CellStore(folder / "metadata.sqlite").cluster(CLUSTER).create(scale=SLOTS)
    running = {}
    try:
        for slot in range(SLOTS):
            running[slot] = start_broker(folder, slot)
        wait_until(
            lambda: all(len(nodes_of(broker)) == SLOTS for broker in running.values()),
            "each broker knows the others",
        )
        yield running
    finally:
        for broker in running.values():
            broker.close()


@pytest.fixture
def brokers(tmp_path):
    """Slot → its broker. All of them lead partitions of the topic."""
    with running_brokers(tmp_path) as running:
        create_topic(running[0], replicas=SLOTS)
        yield running


def create_topic(broker, replicas):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic(TOPIC, PARTITIONS, replicas)
    for created in admin.create_topics([topic]).values():
        created.result(TIMEOUT_S)


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


def wait_spread(brokers, slots=range(SLOTS)):
    """Waits until each broker says that these nodes lead equal shares of the topic."""
    share = dict.fromkeys(slots, PARTITIONS // len(slots))
    wait_until(
        lambda: all(
            TOPIC in topics_of(broker) and leaders_of(broker) == share
            for broker in brokers.values()
        ),
        f"each of {list(slots)} leads its share",
    )


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


def assert_nothing_lost(load, bootstrap, gap_max_s=GAP_MAX_S):
    """Each record that was acknowledged is there once, in its partition's order."""
    assert not load.errors
    gap_s = max(later - earlier for earlier, later in pairwise(load.moments))
    assert gap_s < gap_max_s
    numbers = read_all(bootstrap)
    assert sorted(chain(*numbers.values())) == sorted(load.acked)
    assert all(read == sorted(read) for read in numbers.values())


def test_clients_see_every_broker_and_go_to_the_leaders(brokers):
    addresses = {address_of(broker) for broker in brokers.values()}
    wait_spread(brokers)
    controllers = {metadata_of(broker).controller_id for broker in brokers.values()}
    assert len(controllers) == 1
    for broker in brokers.values():
        assert nodes_of(broker) == addresses
        for partition in topics_of(broker)[TOPIC].partitions.values():
            assert partition.replicas[0] == partition.leader
            assert sorted(partition.replicas) == sorted(partition.isrs) == list(range(SLOTS))
    # One of them is enough to begin with.
    load = Load(brokers[1].bootstrap)
    wait_until(lambda: len(load.acked) > 100, "records are produced")
    load.end()
    assert not load.errors
    assert sorted(chain(*read_all(brokers[2].bootstrap).values())) == sorted(load.acked)


def active_controllers(brokers):
    """The slots of the brokers whose metric says that they are the controller."""
    return [
        slot
        for slot, broker in brokers.items()
        if metric(broker.metrics_address, ACTIVE_CONTROLLERS) == 1
    ]


def test_one_broker_says_that_it_is_the_active_controller(brokers):
    controller = metadata_of(brokers[0]).controller_id
    wait_until(lambda: active_controllers(brokers) == [controller], "the elected one says so")
    brokers.pop(controller).crash()
    wait_until(lambda: len(active_controllers(brokers)) == 1, "another one is elected")
    (successor,) = active_controllers(brokers)
    assert metadata_of(brokers[successor]).controller_id == successor


def set_config(broker, slot, name, value):
    """Sets a config of the broker in one slot. librdkafka asks that broker itself."""
    change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, str(slot), incremental_configs=[change])
    altering = AdminClient({"bootstrap.servers": broker.bootstrap})
    (altered,) = altering.incremental_alter_configs([resource]).values()
    altered.result(TIMEOUT_S)


def config_of(broker, slot, name):
    """Value and source of a config of the broker in a slot."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (described,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(slot))]).values()
    entry = described.result(TIMEOUT_S)[name]
    return entry.value, ConfigSource(entry.source)


def test_a_broker_has_configs_of_its_own(brokers):
    size = "message.max.bytes"
    set_config(brokers[0], 2, size, "1000")
    expected = {
        0: ("1048588", ConfigSource.DEFAULT_CONFIG),
        1: ("1048588", ConfigSource.DEFAULT_CONFIG),
        2: ("1000", ConfigSource.DYNAMIC_BROKER_CONFIG),
    }
    wait_until(
        lambda: {slot: config_of(brokers[1], slot, size) for slot in brokers} == expected,
        "each broker says what it has",
    )
    for slot in brokers:
        assert config_of(brokers[0], slot, "node.id")[0] == str(slot)
    with pytest.raises(KafkaException, match="for one broker"):
        set_config(brokers[0], 1, "log.retention.ms", "-1")
    # It acts on what that broker leads, also after a restart.
    brokers[2].restart()
    wait_spread(brokers)
    partitions = topics_of(brokers[0])[TOPIC].partitions.values()
    refused = {partition.id for partition in partitions if partition.leader == 2}
    producer = Producer({**KAFKA_CLIENT, "bootstrap.servers": brokers[0].bootstrap})
    failed = set()
    for index in range(PARTITIONS):

        def delivered(error, _, index=index):
            if error is not None:
                failed.add(index)

        producer.produce(TOPIC, b"x" * 2_000, partition=index, on_delivery=delivered)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == refused


def test_survivors_take_over_from_a_killed_broker_and_nothing_is_lost(brokers):
    bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
    wait_spread(brokers)
    dead = metadata_of(brokers[0]).controller_id
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
        # The slot has a broker again, which gets its share of the partitions.
        brokers[dead].restart()
        wait_spread(brokers)
        more = len(load.acked) + 200
        wait_until(lambda: len(load.acked) > more, "records are produced still")
    finally:
        load.end()
    assert_nothing_lost(load, bootstrap)


def test_a_broker_that_stops_hands_over_first(brokers):
    bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
    wait_spread(brokers)
    load = Load(bootstrap)
    try:
        wait_until(lambda: len(load.acked) > 200, "records are produced")
        stopping = brokers.pop(metadata_of(brokers[0]).controller_id)
        incarnation = stopping.incarnation
        stopping.close()
        wait_spread(brokers, sorted(brokers))
        more = len(load.acked) + 200
        wait_until(lambda: len(load.acked) > more, "records are produced still")
    finally:
        load.end()
    # Nobody took it for dead: it closed its lane itself.
    metadata = CellStore(stopping.folder / "metadata.sqlite").cluster(CLUSTER)
    states = {lane.incarnation: lane.state for lane in metadata.lanes()}
    assert states[incarnation] == "closed"
    assert_nothing_lost(load, bootstrap, gap_max_s=2)


def test_a_cluster_grows_and_shrinks_while_it_is_used(tmp_path):
    metadata = CellStore(tmp_path / "metadata.sqlite").cluster(CLUSTER)
    metadata.create(scale=1)
    running = {}
    try:
        running[0] = start_broker(tmp_path, 0)
        create_topic(running[0], replicas=1)
        load = Load(running[0].bootstrap)
        try:
            wait_until(lambda: len(load.acked) > 100, "records are produced")
            metadata.set_scale(SLOTS)
            for slot in range(1, SLOTS):
                running[slot] = start_broker(tmp_path, slot)
            wait_spread(running)
            metadata.set_scale(1)
            for slot in range(1, SLOTS):
                running.pop(slot).close()
            wait_spread(running, [0])
            more = len(load.acked) + 200
            wait_until(lambda: len(load.acked) > more, "records are produced still")
        finally:
            load.end()
        assert_nothing_lost(load, running[0].bootstrap)
    finally:
        for broker in running.values():
            broker.close()

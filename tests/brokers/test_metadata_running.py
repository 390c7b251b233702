"""The metadata of a cluster is changed from Python while its broker runs, and before it does."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from brokers import Broker
from brokers.errors import NotFoundError
from brokers.metadata import Acl, CellStore

CLUSTER = "local"
# Far beyond what anything here takes; a test that reaches it fails.
TIMEOUT_S = 60
PASSWORD = "alice-secret"


def store_of(broker):
    return CellStore(broker.folder / "metadata.sqlite").cluster(CLUSTER)


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def secured():
    listener = {"sasl": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]}
    security = {"super_users": ["User:root"]}
    with Broker(listener=listener, security=security) as broker:
        yield broker


@pytest.fixture
def store(broker):
    return store_of(broker)


def produced(settings, topic, partition=0, value=b"x"):
    """Produces a record; returns its error, or None."""
    outcome = []
    producer = Producer({**settings, "message.timeout.ms": 30_000, "acks": "all"})
    producer.produce(topic, value, partition=partition, on_delivery=lambda e, _: outcome.append(e))
    producer.flush(TIMEOUT_S)
    (error,) = outcome
    return error


def plain(broker):
    return {"bootstrap.servers": broker.bootstrap}


def read(broker, topic, partition, count):
    consumer = Consumer({**plain(broker), "group.id": "reader", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        return [message.value() for message in consumer.consume(count, timeout=TIMEOUT_S)]
    finally:
        consumer.close()


def config_of(broker, topic, name):
    admin = AdminClient(plain(broker))
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (future,) = admin.describe_configs([resource]).values()
    return future.result(TIMEOUT_S)[name].value


def until(condition):
    """Repeats a question to the broker until it holds."""
    deadline = threading.Event()
    timer = threading.Timer(TIMEOUT_S, deadline.set)
    timer.start()
    try:
        while not condition():
            assert not deadline.is_set()
    finally:
        timer.cancel()


def test_running_broker_takes_a_topic_and_serves_it(broker, store):
    store.create_topic("taken", partitions=3)
    assert store.wait_led("taken", TIMEOUT_S)
    topic = store.topic("taken")
    assert topic.partitions_led == 3
    assert [facts.leader for facts in store.partitions("taken")] == [0, 0, 0]
    for partition in range(3):
        assert produced(plain(broker), "taken", partition) is None
        assert read(broker, "taken", partition, 1) == [b"x"]
    store.create_partitions("taken", 120)
    assert store.wait_led("taken", TIMEOUT_S)
    assert produced(plain(broker), "taken", 119) is None
    listed = {topic.name: topic for topic in store.topics()}
    assert listed["taken"].partitions_led == 120


def test_wait_ends_where_nobody_leads_or_the_topic_goes(tmp_path):
    store = CellStore(tmp_path / "metadata.sqlite").cluster(CLUSTER)
    store.create()
    store.create_topic("lonely")
    assert not store.wait_led("lonely", 0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.wait_led, "lonely", TIMEOUT_S)
        store.delete_topic("lonely")
        with pytest.raises(NotFoundError):
            waiting.result(TIMEOUT_S)


def test_config_changes_take_effect_on_a_running_broker(broker, store):
    store.create_topic("small")
    assert store.wait_led("small", TIMEOUT_S)
    assert produced(plain(broker), "small", value=b"x" * 5000) is None
    store.alter_topic_configs("small", {"max.message.bytes": "1000"})
    until(lambda: config_of(broker, "small", "max.message.bytes") == "1000")
    refused = produced(plain(broker), "small", value=b"x" * 5000)
    assert refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    store.alter_topic_configs("small", {"max.message.bytes": None})
    until(lambda: config_of(broker, "small", "max.message.bytes") != "1000")
    assert produced(plain(broker), "small", value=b"x" * 5000) is None


def committed(broker, topic, commit=None):
    """The committed offset of a topic's only partition; with `commit`, once it is that."""
    consumer = Consumer({**plain(broker), "group.id": "reader", "enable.auto.commit": False})
    try:
        if commit is not None:
            consumer.commit(offsets=[TopicPartition(topic, 0, commit)], asynchronous=False)
        (position,) = consumer.committed([TopicPartition(topic, 0)], timeout=TIMEOUT_S)
        return position.offset
    finally:
        consumer.close()


def test_offsets_of_a_deleted_topic_are_forgotten(broker, store):
    store.create_topic("again")
    assert store.wait_led("again", TIMEOUT_S)
    assert committed(broker, "again", 7) == 7
    store.delete_topic("again")
    store.create_topic("again")
    assert store.wait_led("again", TIMEOUT_S)
    until(lambda: committed(broker, "again") == OFFSET_INVALID)
    assert committed(broker, "again", 3) == 3


def test_offsets_of_a_topic_that_is_deleted_asleep_are_forgotten():
    with Broker() as broker:
        store = store_of(broker)
        for name in ("again", "kept"):
            store.create_topic(name)
            assert store.wait_led(name, TIMEOUT_S)
            assert committed(broker, name, 7) == 7
        broker.stop()
        store.delete_topic("again")
        store.create_topic("again")
        broker.restart()
        until(lambda: committed(broker, "again") == OFFSET_INVALID)
        assert committed(broker, "again", 3) == 3
        broker.stop()
        broker.restart()
        assert (committed(broker, "again"), committed(broker, "kept")) == (3, 7)


def test_deleted_topic_is_served_no_more(broker, store):
    store.create_topic("gone")
    assert store.wait_led("gone", TIMEOUT_S)
    assert produced(plain(broker), "gone") is None
    store.delete_topic("gone")
    admin = AdminClient(plain(broker))
    until(lambda: "gone" not in admin.list_topics(timeout=TIMEOUT_S).topics)


def test_what_clients_change_is_seen_without_them(broker, store):
    assert produced(plain(broker), "made-by-a-client") is None
    topic = store.topic("made-by-a-client")
    assert topic.partitions_led == topic.partitions == 1


def login(broker, mechanism):
    return {
        **plain(broker),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }


def listed(settings):
    """The topics that a user sees; None where it is not let in."""
    errors: list[KafkaError] = []
    admin = AdminClient({**settings, "error_cb": errors.append})
    for _ in range(TIMEOUT_S):
        try:
            return set(admin.list_topics(timeout=1).topics)
        except KafkaException:
            # It has not answered yet, or the client tries again and again to log in.
            admin.poll(0)
            if any(e.code() == KafkaError._AUTHENTICATION for e in errors):
                return None
    message = f"no answer within {TIMEOUT_S} s: {errors}"
    raise AssertionError(message)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_and_acls_take_effect_on_a_running_broker(secured, mechanism):
    store = store_of(secured)
    topic = f"secret-{mechanism.lower()}"
    store.create_topic(topic)
    assert store.wait_led(topic, TIMEOUT_S)
    settings = login(secured, mechanism)
    assert listed(settings) is None
    store.set_user("alice", PASSWORD, [mechanism])
    until(lambda: listed(settings) == set())
    assert listed({**settings, "sasl.mechanism": "PLAIN"}) == set()
    acl = Acl(resource_type="TOPIC", resource_name=topic, principal="User:alice", operation="WRITE")
    store.add_acls([acl])
    until(lambda: listed(settings) == {topic})
    assert produced(settings, topic) is None
    store.remove_acls([acl])
    until(lambda: listed(settings) == set())
    assert store.remove_user("alice")
    until(lambda: listed(settings) is None)


def test_what_is_changed_asleep_is_there_after_waking():
    broker = Broker()
    try:
        broker.folder.mkdir(parents=True, exist_ok=True)
        store = store_of(broker)
        record = store.create()
        store.create_topic("early", partitions=2, configs={"max.message.bytes": "1000"})
        broker.start()
        assert store.record() == record
        assert produced(plain(broker), "early", 1) is None
        assert config_of(broker, "early", "max.message.bytes") == "1000"
        broker.stop()
        assert store.topic("early").partitions_led == 0
        store.create_partitions("early", 4)
        store.alter_topic_configs("early", {"max.message.bytes": None})
        store.create_topic("later")
        broker.restart()
        assert store.wait_led("early", TIMEOUT_S)
        assert produced(plain(broker), "early", 3) is None
        assert produced(plain(broker), "early", 1, b"y" * 5000) is None
        assert read(broker, "early", 1, 2) == [b"x", b"y" * 5000]
        assert produced(plain(broker), "later") is None
    finally:
        broker.close()

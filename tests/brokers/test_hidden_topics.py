"""Deleted topics that come back, deleted records, and the changes that a broker notes."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from kafka import TopicPartition as Place

from brokers import Broker
from brokers.errors import ExistsError, InvalidError, NotFoundError
from brokers.metadata import CellStore

CLUSTER = "local"
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def store(broker):
    return store_of(broker)


@pytest.fixture
def admin(broker):
    return AdminClient({"bootstrap.servers": broker.bootstrap, "client.id": "an-admin"})


def store_of(broker):
    return CellStore(broker.folder / "metadata.sqlite").cluster(CLUSTER)


def create(admin, name, partitions=1):
    admin.create_topics([NewTopic(name, partitions)])[name].result(TIMEOUT_S)


def delete(admin, name):
    admin.delete_topics([name])[name].result(TIMEOUT_S)


def produce(broker, topic, *values):
    outcomes = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert outcomes == [None] * len(values)


def read(broker, topic, count):
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "log_level": 0}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        messages = consumer.consume(count, timeout=TIMEOUT_S)
        return [(message.offset(), message.value()) for message in messages]
    finally:
        consumer.close()


def deleted(store, name):
    (topic,) = [topic for topic in store.deleted_topics() if topic.name == name]
    return topic


def test_a_topic_that_a_client_deleted_comes_back(broker, store, admin):
    create(admin, "back")
    made = store.topic("back")
    produce(broker, "back", b"a", b"b")
    delete(admin, "back")
    gone = deleted(store, "back")
    assert (gone.id, gone.partitions) == (made.id, 1)
    week_ms = 7 * 24 * 3_600_000
    assert gone.restorable_until_ms - gone.deleted_at_ms == week_ms
    with pytest.raises(NotFoundError):
        store.topic("back")
    assert store.undelete_topic(gone.id).id == made.id
    assert store.wait_led("back", TIMEOUT_S)
    assert read(broker, "back", 2) == [(0, b"a"), (1, b"b")]
    produce(broker, "back", b"c")
    assert read(broker, "back", 3)[2] == (2, b"c")
    with pytest.raises(NotFoundError):
        store.undelete_topic(gone.id)


def test_a_name_that_is_taken_asks_for_another(broker, store, admin):
    create(admin, "taken")
    produce(broker, "taken", b"old")
    delete(admin, "taken")
    create(admin, "taken")
    produce(broker, "taken", b"new")
    gone = deleted(store, "taken")
    with pytest.raises(ExistsError):
        store.undelete_topic(gone.id)
    with pytest.raises(InvalidError) as refused:
        store.undelete_topic(gone.id, "no/slash")
    assert refused.value.field == "name"
    assert store.undelete_topic(gone.id, "renamed").name == "renamed"
    assert store.wait_led("renamed", TIMEOUT_S)
    assert read(broker, "renamed", 1) == [(0, b"old")]
    assert read(broker, "taken", 1) == [(0, b"new")]


def test_a_topic_comes_back_after_the_cluster_slept():
    with Broker() as broker:
        store = store_of(broker)
        store.create_topic("asleep")
        assert store.wait_led("asleep", TIMEOUT_S)
        produce(broker, "asleep", b"a")
        store.delete_topic("asleep")
        broker.restart()
        broker.stop()
        store.undelete_topic(deleted(store, "asleep").id)
        broker.restart()
        assert read(broker, "asleep", 1) == [(0, b"a")]


def test_history_says_when_a_topic_was_deleted(tmp_path):
    store = CellStore(tmp_path / "metadata.sqlite").cluster(CLUSTER)
    store.create()
    made = store.create_topic("t")
    store.delete_topic("t")
    gone = deleted(store, "t")
    (history,) = store.topics_history()
    assert history.deleted_at_ms is None
    assert history.deletions == ((gone.deleted_at_ms, None),)
    store.undelete_topic(gone.id, "u")
    (history,) = store.topics_history()
    ((since, until),) = history.deletions
    assert until is not None
    assert made.created_at_ms <= since == gone.deleted_at_ms <= until
    store.delete_topic("u")
    store.purge_topic(gone.id)
    (history,) = store.topics_history()
    assert history.deletions == ((since, until),)
    assert history.deleted_at_ms is not None
    assert history.deleted_at_ms >= until
    assert store.deleted_topics() == []
    with pytest.raises(NotFoundError):
        store.purge_topic(gone.id)
    with pytest.raises(NotFoundError):
        store.undelete_topic("no id")


def test_records_are_deleted_by_two_clients(broker, store, admin):
    create(admin, "records")
    produce(broker, "records", b"a", b"b", b"c", b"d")
    place = TopicPartition("records", 0, 2)
    (outcome,) = admin.delete_records([place]).values()
    assert outcome.result(TIMEOUT_S).low_watermark == 2
    assert read(broker, "records", 2) == [(2, b"c"), (3, b"d")]
    other = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        other.delete_records({Place("records", 0): 3})
    finally:
        other.close()
    assert read(broker, "records", 1) == [(3, b"d")]


def test_changes_by_clients_are_noted_once(broker, store, admin):
    seen = [change.sequence for change in store.changes()]
    after = max(seen, default=0)
    create(admin, "noted", 2)
    # Not over the protocol: whoever does this has an audit log of their own.
    store.create_topic("not-noted")
    (change,) = store.changes(after)
    assert (change.sequence, change.action, change.target) == (after + 1, "topic.create", "noted")
    assert (change.principal, change.client_id) == ("User:ANONYMOUS", "an-admin")
    assert (change.address, change.target_type) == ("127.0.0.1", "topic")
    assert change.detail["partitions"] == "2"
    assert store.changes(after, limit=0) == []
    assert store.forget_changes(change.sequence) >= 1
    assert store.changes() == []


def test_nothing_is_orphaned_where_nothing_was_restored(store):
    assert store.orphaned_topics() == []
    with pytest.raises(NotFoundError):
        store.attach_topic("AAAAAAAAAAAAAAAAAAAAAA")

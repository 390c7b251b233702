"""A cluster that takes no records, as clients see it."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from kafka.errors import PolicyViolationError

from brokers import Broker
from brokers.errors import InvalidError, NotFoundError
from brokers.metadata import CellStore

CLUSTER = "local"
TOPIC = "orders"
REASON = "The budget “small” is used up until 2026-12-01."
# Far beyond what anything here takes; a test that reaches it fails.
TIMEOUT_S = 60
PASSWORD = "a-password"


@pytest.fixture(scope="module")
def broker():
    listener = {"sasl": ["PLAIN"]}
    security = {"super_users": ["User:root"], "allow_everyone_if_no_acl_found": True}
    with Broker(listener=listener, security=security) as broker:
        store = store_of(broker)
        for user in ("root", "alice"):
            store.set_user(user, PASSWORD)
        store.create_topic(TOPIC, partitions=1)
        assert store.wait_led(TOPIC, TIMEOUT_S)
        yield broker


@pytest.fixture
def store(broker):
    store = store_of(broker)
    yield store
    store.resume_produce()
    taken_again(broker)


def store_of(broker):
    return CellStore(broker.folder / "metadata.sqlite").cluster(CLUSTER)


def settings_of(broker, user):
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
        "log_level": 0,
    }


def outcome(broker, user):
    """The error of a record that is produced now, or None."""
    outcomes = []
    producer = Producer({**settings_of(broker, user), "message.timeout.ms": 30_000})
    producer.produce(TOPIC, b"x", partition=0, on_delivery=lambda e, _: outcomes.append(e))
    producer.flush(TIMEOUT_S)
    (error,) = outcomes
    return error


def refused(broker):
    """Produces until it is refused: the broker follows the metadata within moments."""
    for _ in range(200):
        error = outcome(broker, "alice")
        if error is not None:
            return error
    pytest.fail("nothing was refused")


def taken_again(broker):
    """Produces until it is taken: the broker follows the metadata within moments."""
    for _ in range(200):
        if outcome(broker, "alice") is None:
            return
    pytest.fail("produce is still refused")


def refusal_of(broker):
    """The text of a client's error, in which the broker's reason is."""
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password=PASSWORD,
    )
    try:
        with pytest.raises(PolicyViolationError) as raised:
            producer.send(TOPIC, b"x", partition=0).get(TIMEOUT_S)
        return str(raised.value)
    finally:
        producer.close()


def test_client_gets_the_reason_and_all_else_goes_on(broker, store):
    assert store.produce_suspension() is None
    assert outcome(broker, "alice") is None
    store.suspend_produce(REASON)
    assert store.produce_suspension() == REASON
    assert refused(broker).code() == KafkaError.POLICY_VIOLATION
    assert REASON in refusal_of(broker)
    assert outcome(broker, "root") is None, "the service itself goes on"
    consumer = Consumer({**settings_of(broker, "alice"), "group.id": "readers"})
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    assert len(consumer.consume(2, timeout=TIMEOUT_S)) == 2
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
    consumer.close()
    admin = AdminClient(settings_of(broker, "alice"))
    assert TOPIC in admin.list_topics(timeout=TIMEOUT_S).topics
    assert store.resume_produce()
    assert not store.resume_produce()
    taken_again(broker)


def test_it_holds_after_a_restart(broker, store):
    store.suspend_produce("first")
    store.suspend_produce(REASON)
    broker.stop()
    broker.restart()
    error = outcome(broker, "alice")
    assert error is not None
    assert error.code() == KafkaError.POLICY_VIOLATION
    assert REASON in refusal_of(broker)


def test_reasons_that_cannot_be_meant_are_refused(broker, store):
    for reason in ("", "  ", "x" * 1025):
        with pytest.raises(InvalidError) as raised:
            store.suspend_produce(reason)
        assert raised.value.field == "reason"
    assert store.produce_suspension() is None
    with pytest.raises(NotFoundError):
        CellStore(broker.folder / "metadata.sqlite").cluster("another").suspend_produce(REASON)

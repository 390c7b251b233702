"""A cluster whose traffic is refused or throttled, as clients see it."""

import subprocess
import threading
import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupState,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import PolicyViolationError

from brokers import Broker
from brokers.errors import InvalidError, NotFoundError
from brokers.metadata import CellStore, TrafficLimit
from tests.peer.kafka import java_command
from tests.supervisor.run import wait_until

CLUSTER = "local"
TOPIC = "orders"
REASON = "The budget “small” is used up until 2026-12-01."
NO_PRODUCE = TrafficLimit(kind="refuse_produce", reason=REASON)
NOTHING = TrafficLimit(kind="refuse", reason=REASON)
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
    store.set_traffic_limit(None)
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
    errors = []

    def is_refused():
        errors.append(outcome(broker, "alice"))
        return errors[-1] is not None

    wait_until(is_refused, "produce is refused")
    return errors[-1]


def taken_again(broker):
    """Produces until it is taken: the broker follows the metadata within moments."""
    wait_until(lambda: outcome(broker, "alice") is None, "produce is taken again")


def python_settings(broker):
    """Settings of kafka-python's clients."""
    return {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }


def refusal_of(broker):
    """The text of a client's error, in which the broker's reason is."""
    producer = KafkaProducer(**python_settings(broker))
    try:
        with pytest.raises(PolicyViolationError) as raised:
            producer.send(TOPIC, b"x", partition=0).get(TIMEOUT_S)
        return str(raised.value)
    finally:
        producer.close()


def test_client_gets_the_reason_and_all_else_goes_on(broker, store):
    assert store.traffic_limit() is None
    assert outcome(broker, "alice") is None
    store.set_traffic_limit(NO_PRODUCE)
    assert store.traffic_limit() == NO_PRODUCE
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
    store.set_traffic_limit(None)
    assert store.traffic_limit() is None
    taken_again(broker)


def consumer_of(broker, group):
    """A consumer in a group, whose session would end soon if it sent no heartbeats."""
    settings = settings_of(broker, "alice") | {
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 500,
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    return consumer


def polled(consumer, is_enough):
    """Messages, errors among them, until one is enough."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and is_enough(message):
            return message
    pytest.fail("it did not come")


def test_a_refused_consumer_learns_it_stays_in_its_group_and_goes_on_by_itself(broker, store):
    assert outcome(broker, "alice") is None
    consumer = consumer_of(broker, "patient")
    try:
        first = polled(consumer, lambda message: message.error() is None)
        store.set_traffic_limit(NOTHING)
        refusal = polled(consumer, lambda message: message.error() is not None)
        assert refusal.error().code() == KafkaError.POLICY_VIOLATION
        assert not refusal.error().fatal()
        member = consumer.memberid()
        assert refused(broker).code() == KafkaError.POLICY_VIOLATION
        assert REASON in refusal_of(broker)
        # Offsets are committed, and what is there is listed.
        consumer.commit(first, asynchronous=False)
        (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=TIMEOUT_S)
        assert committed.offset == first.offset() + 1
        assert consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=TIMEOUT_S)[1] > 0
        assert outcome(broker, "root") is None, "the service itself goes on"
        store.set_traffic_limit(None)
        polled(consumer, lambda message: message.error() is None)
        assert consumer.memberid() == member
    finally:
        consumer.close()


def test_a_consumer_that_looks_at_the_whole_answer_goes_on_by_itself_too(broker, store):
    """kafka-python treats the error of the response as Java's consumer does: it logs it."""
    assert outcome(broker, "alice") is None
    store.set_traffic_limit(NOTHING)
    assert refused(broker).code() == KafkaError.POLICY_VIOLATION
    consumer = KafkaConsumer(
        TOPIC,
        group_id="whole",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **python_settings(broker),
    )
    try:
        assert consumer.poll(timeout_ms=5_000) == {}
        assert consumer.assignment()
        generation = consumer._coordinator.generation_if_stable()
        store.set_traffic_limit(None)
        deadline = time.monotonic() + TIMEOUT_S
        while not (records := consumer.poll(timeout_ms=1_000)):
            assert time.monotonic() < deadline
        assert records
        assert consumer._coordinator.generation_if_stable() == generation
    finally:
        consumer.close()


def test_javas_consumer_goes_on_by_itself(broker, store, tmp_path):
    assert outcome(broker, "alice") is None
    store.set_traffic_limit(NOTHING)
    assert refused(broker).code() == KafkaError.POLICY_VIOLATION
    login = f'PlainLoginModule required username="alice" password="{PASSWORD}";'
    settings = tmp_path / "client.properties"
    settings.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.plain.{login}\n"
    )
    command = java_command(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--group", "java"),
        *("--from-beginning", "--max-messages", "1", "--command-config", str(settings)),
        options=("-Xmx256m", "-XX:+UseSerialGC"),
    )
    admin = AdminClient(settings_of(broker, "alice"))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as java:
        stop = threading.Timer(TIMEOUT_S, java.kill)
        stop.start()
        while state_of(admin, "java") != ConsumerGroupState.STABLE:
            assert java.poll() is None
        # Another one joins and is refused meanwhile, which takes as long as Java's first fetches.
        other = consumer_of(broker, "other")
        polled(other, lambda message: message.error() is not None)
        other.close()
        assert java.poll() is None
        store.set_traffic_limit(None)
        printed, _ = java.communicate()
        stop.cancel()
        assert "Processed a total of 1 messages" in printed
    assert java.returncode == 0


def state_of(admin, group):
    """The state of a group."""
    return admin.describe_consumer_groups([group])[group].result(TIMEOUT_S).state


def test_a_throttled_cluster_takes_and_gives_its_rate(broker, store):
    rate = 65_536
    store.set_traffic_limit(TrafficLimit(kind="throttle", reason=REASON, bytes_per_s=rate))
    pauses_ms = []
    producer = Producer(
        settings_of(broker, "alice")
        | {"throttle_cb": lambda event: pauses_ms.append(event.throttle_time * 1_000)}
    )

    def produce():
        producer.produce(TOPIC, b"x" * rate, partition=0)
        assert producer.flush(TIMEOUT_S) == 0
        producer.poll(0)

    # What the bucket holds at first is ten seconds of the rate.
    for _ in range(200):
        if any(pauses_ms):
            break
        produce()
    begun = time.monotonic()
    for _ in range(5):
        produce()
    assert time.monotonic() - begun > 3
    assert outcome(broker, "root") is None
    store.set_traffic_limit(None)
    begun = time.monotonic()
    assert outcome(broker, "alice") is None
    assert time.monotonic() - begun < 10


def test_it_holds_after_a_restart(broker, store):
    store.set_traffic_limit(TrafficLimit(kind="throttle", reason="first", bytes_per_s=1))
    store.set_traffic_limit(NOTHING)
    broker.stop()
    broker.restart()
    error = outcome(broker, "alice")
    assert error is not None
    assert error.code() == KafkaError.POLICY_VIOLATION
    assert REASON in refusal_of(broker)


def test_reasons_that_cannot_be_meant_are_refused(broker, store):
    for reason in ("", "  ", "x" * 1025):
        with pytest.raises(InvalidError) as raised:
            store.set_traffic_limit(TrafficLimit(kind="refuse", reason=reason))
        assert raised.value.field == "reason"
    with pytest.raises(InvalidError) as raised:
        store.set_traffic_limit(TrafficLimit(kind="throttle", reason=REASON, bytes_per_s=0))
    assert raised.value.field == "bytes_per_s"
    assert store.traffic_limit() is None
    with pytest.raises(NotFoundError):
        CellStore(broker.folder / "metadata.sqlite").cluster("another").set_traffic_limit(NOTHING)

"""Quotas: set without a broker, held by one that runs."""

import threading

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from brokers import Broker
from brokers.errors import InvalidError, NotFoundError
from brokers.metadata import CellStore, Quota, QuotaEntity

CLUSTER = "local"
TOPIC = "orders"
TIMEOUT_S = 60
PASSWORD = "a-password"
RATE = 50_000
# What may be taken at once.
BURST = 10 * RATE


@pytest.fixture
def cluster(tmp_path):
    store = CellStore(tmp_path / "metadata.sqlite").cluster(CLUSTER)
    store.create()
    return store


def test_quotas_come_back_sorted_by_entity(cluster):
    assert cluster.quotas() == []
    default = QuotaEntity(user="", client_id="")
    alice = QuotaEntity(user="alice")
    address = QuotaEntity(ip="192.0.2.1")
    cluster.set_quota(address, {"connection_creation_rate": 5})
    cluster.set_quota(alice, {"producer_byte_rate": 1024, "max_connections": 3})
    cluster.set_quota(default, {"request_percentage": 12.5})
    expected = [
        Quota(entity=default, values={"request_percentage": 12.5}),
        Quota(entity=alice, values={"producer_byte_rate": 1024.0, "max_connections": 3.0}),
        Quota(entity=address, values={"connection_creation_rate": 5.0}),
    ]
    assert cluster.quotas() == expected
    # Others go with a new set.
    cluster.set_quota(alice, {"consumer_byte_rate": 7})
    assert cluster.quotas()[1].values == {"consumer_byte_rate": 7.0}
    assert cluster.remove_quota(alice)
    assert not cluster.remove_quota(alice)
    assert len(cluster.quotas()) == 2


@pytest.mark.parametrize(
    ("entity", "values", "field"),
    [
        (QuotaEntity(), {"producer_byte_rate": 1}, "entity"),
        (QuotaEntity(user="a", ip="192.0.2.1"), {"producer_byte_rate": 1}, "entity"),
        (QuotaEntity(ip="nowhere"), {"connection_creation_rate": 1}, "ip"),
        (QuotaEntity(user="a" * 300), {"producer_byte_rate": 1}, "user"),
        (QuotaEntity(user="a"), {"producer_byte_rate": 0}, "producer_byte_rate"),
        (QuotaEntity(user="a"), {"producer_byte_rate": 0.5}, "producer_byte_rate"),
        (QuotaEntity(user="a"), {"speed": 1}, "speed"),
        (QuotaEntity(client_id="a"), {"max_connections": 1}, "max_connections"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(cluster, entity, values, field):
    with pytest.raises(InvalidError) as refused:
        cluster.set_quota(entity, values)
    assert refused.value.field == field
    assert cluster.quotas() == []


def test_a_cluster_that_does_not_exist_has_no_quotas(tmp_path):
    store = CellStore(tmp_path / "metadata.sqlite").cluster(CLUSTER)
    with pytest.raises(NotFoundError):
        store.set_quota(QuotaEntity(user="a"), {"producer_byte_rate": 1})


@pytest.fixture(scope="module")
def broker():
    listener = {"sasl": ["PLAIN"]}
    security = {"super_users": ["User:root"], "allow_everyone_if_no_acl_found": True}
    with Broker(listener=listener, security=security) as broker:
        store = CellStore(broker.folder / "metadata.sqlite").cluster(CLUSTER)
        for user in ("root", "alice", "bob"):
            store.set_user(user, PASSWORD)
        # Of every user, the service's own too.
        store.set_quota(QuotaEntity(user=""), {"producer_byte_rate": RATE})
        # After the quota: a broker hears of changes in their order, so one that leads knows it.
        store.create_topic(TOPIC, partitions=1)
        assert store.wait_led(TOPIC, TIMEOUT_S)
        yield broker


def paused_ms(broker, user, count, size):
    """How long the broker asks a client to pause in all while it produces, in ms."""
    pauses_ms = []
    acked = threading.Semaphore(0)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "log_level": 0,
            "linger.ms": 0,
            "message.timeout.ms": 60_000,
            # So that no request is on its way while the broker does not read.
            "max.in.flight": 1,
            "batch.num.messages": 1,
            "throttle_cb": lambda event: pauses_ms.append(event.throttle_time * 1000),
        }
    )

    def delivered(error, _):
        assert error is None
        acked.release()

    for _ in range(count):
        producer.produce(TOPIC, b"x" * size, on_delivery=delivered)
    assert producer.flush(TIMEOUT_S) == 0
    for _ in range(count):
        assert acked.acquire(blocking=False)
    # What the last answers said.
    producer.poll(0)
    return sum(pauses_ms)


def test_a_producer_is_asked_to_pause_for_what_it_took_too_much(broker):
    excess_s = 3
    # In one request, so that no time passes that pays for some of it.
    pause_s = paused_ms(broker, "alice", 1, BURST + excess_s * RATE) / 1000
    # A request is a little larger than its records.
    assert excess_s <= pause_s <= excess_s * 1.1


def test_the_service_itself_is_never_asked_to_pause(broker):
    assert paused_ms(broker, "root", 2 * BURST // 50_000, 50_000) == 0


def test_another_client_library_goes_on_after_its_pause(broker):
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="bob",
        sasl_plain_password=PASSWORD,
    )
    try:
        sent = [producer.send(TOPIC, b"x" * 60_000) for _ in range(10)]
        offsets = [future.get(timeout=TIMEOUT_S).offset for future in sent]
        assert offsets == sorted(offsets)
    finally:
        producer.close()

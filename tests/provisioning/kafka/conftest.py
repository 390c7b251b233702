"""A broker with SASL, as the internal listener of a managed cluster has it."""

import uuid
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from brokers import Broker
from provisioning.kafka import Connection
from provisioning.kafka.worker.clients import KafkaClients

PASSWORD = "derived from the cell's secret"
MANAGED: dict[str, Any] = {
    "listener": {"kafka": "127.0.0.1:0", "sasl": ["PLAIN", "SCRAM-SHA-512"]},
    "security": {
        "super_users": ["User:__freshet"],
        "users": [{"name": "__freshet", "password": PASSWORD}],
        "allow_everyone_if_no_acl_found": False,
    },
}


@pytest.fixture(scope="session")
def managed_broker():
    """A broker that all tests share."""
    with Broker(**MANAGED) as broker:
        yield broker


@pytest.fixture
def access(managed_broker):
    """The super user's Kafka clients for the broker, in this process."""
    return KafkaClients(Connection(managed_broker.bootstrap, PASSWORD))


@pytest.fixture
def name():
    """A name that no other test has."""
    return f"name-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(access, name):
    """A topic of three partitions."""
    return create_topic(access, name, 3)


def create_topic(access, topic, partitions, **config):
    """Creates a topic. Returns its name."""
    with access.admin() as admin:
        (future,) = admin.create_topics([NewTopic(topic, partitions, config=config)]).values()
        future.result()
    return topic


def produce(access, topic, records):
    """Produces records from triples `(partition, value, timestamp_ms)` with a plain client."""
    producer = Producer(access.connection.settings())
    errors = []
    for partition, value, timestamp_ms in records:
        producer.produce(
            topic,
            value,
            partition=partition,
            timestamp=timestamp_ms,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(30) == 0
    assert [error for error in errors if error] == []

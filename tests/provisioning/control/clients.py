"""A tenant's Kafka clients at a broker that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer

from tests.console.clients import ApiClient
from tests.provisioning.control.world import access_of

POLICY_VIOLATION = KafkaError.POLICY_VIOLATION


def client_settings(api: Callable[[], ApiClient], cluster_id: str) -> dict[str, Any]:
    """librdkafka's settings of a client with a credential of its own. The broker runs."""
    made = api().post(f"/clusters/{cluster_id}/credentials", {"name": "app", "role": "full"}).json()
    return {
        "bootstrap.servers": access_of(cluster_id).connection.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": made["username"],
        "sasl.password": made["password"],
    }


def produce_error(settings: dict[str, Any], topic: str) -> KafkaError | None:
    """Produces one record with a fresh client; gives what it is told, None if it is taken."""
    told: list[KafkaError | None] = []
    producer = Producer(settings | {"message.timeout.ms": 20_000})
    producer.produce(topic, b"x", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(30) == 0
    return told[0]


def wait_for_error(settings: dict[str, Any], topic: str) -> KafkaError:
    """Produces until that is refused, which brokers do within a second; gives the refusal."""
    while (error := produce_error(settings, topic)) is None:
        pass
    return error


def wait_for_success(settings: dict[str, Any], topic: str) -> None:
    """Produces until a record is taken."""
    while produce_error(settings, topic) is not None:
        pass


def fetch_values(settings: dict[str, Any], topic: str, count: int) -> list[bytes | None]:
    """Reads so many records from the beginning and commits them; gives their values."""
    consumer = Consumer(
        settings | {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe([topic])
    seen: list[bytes | None] = []
    while len(seen) < count:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            seen.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return seen

"""A tenant's Kafka clients, connected to a running broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer

from tests.console.clients import ApiClient
from tests.provisioning.control.world import access_of

POLICY_VIOLATION = KafkaError.POLICY_VIOLATION


def client_settings(api: Callable[[], ApiClient], cluster_id: str) -> dict[str, Any]:
    """librdkafka's settings for a client with a new credential. The broker must run."""
    credential = (
        api().post(f"/clusters/{cluster_id}/credentials", {"name": "app", "role": "full"}).json()
    )
    return {
        "bootstrap.servers": access_of(cluster_id).connection.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": credential["username"],
        "sasl.password": credential["password"],
    }


def produce_error(settings: dict[str, Any], topic: str) -> KafkaError | None:
    """Produces one record with a new client; returns the error, None where it was accepted."""
    reported: list[KafkaError | None] = []
    producer = Producer(settings | {"message.timeout.ms": 20_000})
    producer.produce(topic, b"x", on_delivery=lambda error, _: reported.append(error))
    assert producer.flush(30) == 0
    return reported[0]


def wait_for_error(settings: dict[str, Any], topic: str) -> KafkaError:
    """Produces until brokers refuse a record, which they do within a second; returns the error."""
    while (error := produce_error(settings, topic)) is None:
        pass
    return error


def wait_for_success(settings: dict[str, Any], topic: str) -> None:
    """Produces until a record is accepted."""
    while produce_error(settings, topic) is not None:
        pass


def fetch_error(settings: dict[str, Any], topic: str) -> KafkaError:
    """Reads until brokers refuse it, which they do within a second; returns the error."""
    consumer = Consumer(settings | {"group.id": "refused", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while (message := consumer.poll(0.2)) is None or message.error() is None:
        pass
    consumer.close()
    return message.error()


def fetch_values(settings: dict[str, Any], topic: str, count: int) -> list[bytes | None]:
    """Reads `count` records from the beginning and commits them; returns their values."""
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

"""Kafka clients that connect with Terraform's outputs and the passwords of its configuration."""

from __future__ import annotations

import confluent_kafka

from tests.service.api import Connection, Credential
from tests.service.traffic import librdkafka_settings
from tests.terraform.workspace import Workspace

TIMEOUT_S = 60


def connection_of(workspace: Workspace, place: int = 0) -> Connection:
    """Returns how the application with this number (from 0) connects."""
    shown = workspace.outputs()
    password = workspace.secrets["passwords"][place]
    return Connection(
        shown["bootstrap"], Credential(shown["users"][place], password, "SCRAM-SHA-512")
    )


def produce_and_consume(connection: Connection, topic: str, group: str) -> None:
    """Sends a record and reads one, each with a new client."""
    errors: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer(librdkafka_settings(connection))
    producer.produce(topic, b"at once", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None]
    more = {"group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(librdkafka_settings(connection, **more))
    consumer.subscribe([topic])
    message = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert message is not None
    assert message.error() is None, message.error()
    assert message.value() == b"at once"

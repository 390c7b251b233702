"""Idempotent producers of several client libraries, made alike.

Each sends the values `<id>.0`, `<id>.1`, … in order, retries on its own for as long as its library
allows, and reports where every record went. A record that a library gives up is an error here.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka

from tests.peer.kafka import java_command
from tests.peer.processes import bound_command

# Longer than all restarts of a run together: a library must not give a record up for its age.
DELIVERY_SECONDS = 600

Place = tuple[int, int]


@dataclass
class Acks:
    """Where acknowledged records went: number → (partition, offset). Shared between threads."""

    places: dict[int, Place] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def acked(self, number: int, partition: int, offset: int) -> None:
        """Notes an acknowledged record."""
        with self.changed:
            self.places[number] = (partition, offset)
            self.changed.notify_all()

    def failed(self, error: object) -> None:
        """Notes that the library gave something up."""
        with self.changed:
            self.errors.append(str(error))
            self.changed.notify_all()


Produce = Callable[[str, str, int, int, Acks], None]


def produce_librdkafka(bootstrap: str, topic: str, who: int, count: int, acks: Acks) -> None:
    """By confluent-kafka."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "enable.idempotence": True,
            "linger.ms": 2,
            "batch.num.messages": 50,
            "message.timeout.ms": DELIVERY_SECONDS * 1000,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20,
        }
    )

    def delivered(number: int) -> Callable[[object, confluent_kafka.Message], None]:
        def report(error: object, message: confluent_kafka.Message) -> None:
            if error is not None:
                acks.failed(error)
            else:
                acks.acked(number, message.partition() or 0, message.offset() or 0)

        return report

    for number in range(count):
        value = f"{who}.{number}".encode()
        while True:
            try:
                producer.produce(topic, value, on_delivery=delivered(number))
            except BufferError:
                producer.poll(0.1)
            else:
                break
        producer.poll(0)
        if number % 500 == 499:
            # So that the run lasts as long as its kills.
            producer.flush()
    producer.flush()


def produce_kafka_python(bootstrap: str, topic: str, who: int, count: int, acks: Acks) -> None:
    """By kafka-python."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        acks="all",
        linger_ms=2,
        delivery_timeout_ms=DELIVERY_SECONDS * 1000,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=200,
        retry_backoff_ms=20,
        max_block_ms=DELIVERY_SECONDS * 1000,
    )
    for number in range(count):
        future = producer.send(topic, f"{who}.{number}".encode())
        future.add_callback(
            lambda metadata, number=number: acks.acked(number, metadata.partition, metadata.offset)
        )
        future.add_errback(acks.failed)
        if number % 500 == 499:
            producer.flush()
    producer.flush()
    producer.close()


def produce_aiokafka(bootstrap: str, topic: str, who: int, count: int, acks: Acks) -> None:
    """By aiokafka."""

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            linger_ms=2,
            # Also the age at which it gives a batch up.
            request_timeout_ms=DELIVERY_SECONDS * 1000,
            retry_backoff_ms=20,
        )
        await producer.start()
        try:
            for first in range(0, count, 500):
                numbers = range(first, min(first + 500, count))
                sent = [await producer.send(topic, f"{who}.{n}".encode()) for n in numbers]
                for number, metadata in zip(numbers, await asyncio.gather(*sent), strict=True):
                    acks.acked(number, metadata.partition, metadata.offset)
        finally:
            await producer.stop()

    asyncio.run(run())


def produce_java(bootstrap: str, topic: str, who: int, count: int, acks: Acks) -> None:
    """By Kafka's own client: its VerifiableProducer, with idempotence, which it has off."""
    settings = {
        "enable.idempotence": "true",
        "retries": "2147483647",
        "delivery.timeout.ms": str(DELIVERY_SECONDS * 1000),
        "linger.ms": "2",
        "reconnect.backoff.ms": "20",
        "reconnect.backoff.max.ms": "200",
        "retry.backoff.ms": "20",
    }
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as config:
        config.writelines(f"{name}={value}\n" for name, value in settings.items())
        config.flush()
        run_verifiable_producer(bootstrap, topic, who, count, Path(config.name), acks)


def run_verifiable_producer(
    bootstrap: str, topic: str, who: int, count: int, config: Path, acks: Acks
) -> None:
    """Runs the tool to its end and reads what it reports."""
    command = java_command(
        "org.apache.kafka.tools.VerifiableProducer",
        *("--bootstrap-server", bootstrap, "--topic", topic),
        *("--max-messages", str(count), "--throughput", "5000"),
        *("--value-prefix", str(who), "--command-config", str(config)),
        options=("-Xmx256m", "-XX:+UseSerialGC"),
    )
    with subprocess.Popen(
        bound_command(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            event = json.loads(line)
            if event["name"] == "producer_send_success":
                number = int(event["value"].split(".")[1])
                acks.acked(number, event["partition"], event["offset"])
            elif event["name"] == "producer_send_error":
                acks.failed(event)
    if process.returncode != 0:
        acks.failed(f"VerifiableProducer ended with {process.returncode}")


PRODUCERS: dict[str, Produce] = {
    "librdkafka": produce_librdkafka,
    "java": produce_java,
    "aiokafka": produce_aiokafka,
    "kafka-python": produce_kafka_python,
}

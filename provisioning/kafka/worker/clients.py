"""A worker's Kafka clients, which are kept from call to call because a new one costs a handshake.

They are used by one thread, because a worker makes one call at a time. A client is created when it
is first needed, and replaced after a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from provisioning.kafka.connection import Connection
from provisioning.kafka.errors import RefusedError
from provisioning.kafka.worker.batches import BatchConsumer
from provisioning.kafka.worker.errors import kafka_errors

PRODUCE_TIMEOUT_S = 10.0

# Clients one of whose threads may never return. Freeing one would wait for that thread, so they
# stay until the process ends.
_hung: list[Any] = []


@dataclass
class KafkaClients:
    """The Kafka clients of the worker's connection. Each is lent to one caller at a time."""

    connection: Connection
    # Reports to the caller how far the call is.
    announce: Callable[[object], None] = lambda _: None
    # Whether this process should make no further call.
    tainted: bool = False
    _kept: dict[str, Any] = field(default_factory=dict)

    def taint(self, client: Consumer | BatchConsumer) -> None:
        """Notes that a client may hang, so that neither it nor this process is used again."""
        self.tainted = True
        _hung.append(client)

    @contextmanager
    def admin(self) -> Iterator[AdminClient]:
        """Lends the admin client."""
        settings = self.connection.settings()
        with self._lend_client("admin", lambda: AdminClient(settings)) as client:
            yield client

    @contextmanager
    def producer(self) -> Iterator[Producer]:
        """Lends the idempotent producer."""
        settings = self.connection.producer_settings(PRODUCE_TIMEOUT_S)
        with self._lend_client("producer", lambda: Producer(settings)) as client:
            yield client

    @contextmanager
    def consumer(self, isolation: str = "read_committed") -> Iterator[Consumer]:
        """Lends the consumer of an isolation level, without partitions."""
        settings = self.connection.consumer_settings(isolation)
        with self._lend_client(isolation, lambda: Consumer(settings)) as client:
            yield client
            # Reached only without an error: a consumer that failed is not lent again.
            if client not in _hung:
                assign_partitions(client, [])

    @contextmanager
    def batch_consumer(self) -> Iterator[BatchConsumer]:
        """Lends the consumer that decodes one batch at a time."""
        with self._lend_client("batches", lambda: BatchConsumer(self.connection)) as client:
            yield client

    @contextmanager
    def _lend_client(self, kind: str, make: Callable[[], Any]) -> Iterator[Any]:
        with kafka_errors():
            client = self._kept.pop(kind, None) or make()
        try:
            with kafka_errors():
                yield client
        except RefusedError:
            # After a refusal of the broker a client still works. A consumer is dropped
            # nevertheless, because it still has its partitions.
            if not isinstance(client, (Consumer, BatchConsumer)):
                self._kept[kind] = client
            raise
        if client in _hung:
            return
        # Not reached after any other error: then a new client is safer, because the broker may have
        # moved, and an idempotent producer may have given up.
        self._kept[kind] = client


def assign_partitions(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """Assigns other partitions to a consumer. Resumes the old ones: librdkafka keeps pauses."""
    consumer.resume(consumer.assignment())
    consumer.assign(partitions)


def take_messages(consumer: Consumer, count: int, timeout_s: float) -> list[Message]:
    """Up to `count` messages as soon as there is one; none after `timeout_s` seconds."""
    first = consumer.poll(timeout_s)
    # `consume` alone waits for its whole time unless the batch is full.
    return [] if first is None else [first, *consumer.consume(count - 1, timeout=0)]

"""A worker's Kafka clients, kept from call to call because each costs a handshake.

They belong to one thread: a worker makes one call at a time. A client is made when it is first
needed, and made anew after a failure.
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
from provisioning.kafka.worker.errors import kafka_errors

PRODUCE_TIMEOUT_S = 10.0


@dataclass
class Access:
    """The brokers of the worker's cluster. One borrower at a time has a client."""

    connection: Connection
    _kept: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def admin(self) -> Iterator[AdminClient]:
        """Lends the admin client."""
        settings = self.connection.settings()
        with self._lend("admin", lambda: AdminClient(settings)) as client:
            yield client

    @contextmanager
    def producer(self) -> Iterator[Producer]:
        """Lends the idempotent producer."""
        settings = self.connection.producer_settings(PRODUCE_TIMEOUT_S)
        with self._lend("producer", lambda: Producer(settings)) as client:
            yield client

    @contextmanager
    def consumer(self, isolation: str = "read_committed") -> Iterator[Consumer]:
        """Lends the consumer of an isolation level. It comes without partitions."""
        settings = self.connection.consumer_settings(isolation)
        with self._lend(isolation, lambda: Consumer(settings)) as client:
            yield client
            # Only after use without an error: a failed consumer is not lent again.
            assign(client, [])

    @contextmanager
    def _lend(self, kind: str, make: Callable[[], Any]) -> Iterator[Any]:
        with kafka_errors():
            client = self._kept.pop(kind, None) or make()
        try:
            with kafka_errors():
                yield client
        except RefusedError:
            # A broker's "no" says nothing against a client; a consumer still has its partitions.
            if not isinstance(client, Consumer):
                self._kept[kind] = client
            raise
        # After any other error a new one is safer: its broker may have moved, and an idempotent
        # producer may have given up.
        self._kept[kind] = client


def assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """Gives a consumer other partitions. librdkafka would keep paused what was paused before."""
    consumer.resume(consumer.assignment())
    consumer.assign(partitions)


def take(consumer: Consumer, count: int, timeout_s: float) -> list[Message]:
    """Up to `count` messages, as soon as there is one; none after `timeout_s` seconds."""
    first = consumer.poll(timeout_s)
    # `consume` alone would wait out its time for a batch that is not full.
    return [] if first is None else [first, *consumer.consume(count - 1, timeout=0)]

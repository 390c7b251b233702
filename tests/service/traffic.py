"""Producers and consumers of two client libraries, and the count of what they saw."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import confluent_kafka
import kafka
from typing_extensions import override

from .api import Connection

DRAIN_TIMEOUT_S = 120.0
POLL_S = 0.2


class Complaints(logging.Handler):
    """Collects what a client library complains about, at `level` and above."""

    def __init__(self, level: int = logging.ERROR) -> None:
        super().__init__(level)
        self.lines: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the line of a record."""
        self.lines.append(f"{record.levelname} {record.getMessage()}")

    @contextmanager
    def attached(self, name: str) -> Iterator[logging.Logger]:
        """Collects what the logger of this name logs until the block ends."""
        logger = logging.getLogger(name)
        logger.addHandler(self)
        try:
            yield logger
        finally:
            logger.removeHandler(self)


def librdkafka_settings(connection: Connection, **more: object) -> dict[str, Any]:
    """Settings of a librdkafka client."""
    return {
        "bootstrap.servers": connection.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": connection.credential.mechanism,
        "sasl.username": connection.credential.username,
        "sasl.password": connection.credential.password,
        **more,
    }


def kafka_python_settings(connection: Connection, **more: object) -> dict[str, Any]:
    """Settings of a kafka-python client."""
    return {
        "bootstrap_servers": connection.bootstrap_servers.split(","),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": connection.credential.mechanism,
        "sasl_plain_username": connection.credential.username,
        "sasl_plain_password": connection.credential.password,
        **more,
    }


class Producer:
    """An idempotent producer in a thread: numbered records, until it is asked to stop.

    A record counts as sent when it was acknowledged; any failed delivery is kept.
    """

    def __init__(self, connection: Connection, topic: str, name: str, per_s: int = 200) -> None:
        self.acked: set[str] = set()
        self.failures: list[str] = []
        self._topic, self._name, self._pause_s = topic, name, 1 / per_s
        settings = librdkafka_settings(
            connection, **{"enable.idempotence": True, "linger.ms": 5, "error_cb": lambda _: None}
        )
        self._producer = confluent_kafka.Producer(settings, logger=logging.getLogger("producer"))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Producer:
        """Begins."""
        self._thread.start()
        return self

    def finish(self) -> set[str]:
        """Stops, waits until all is acknowledged, and returns the values that were."""
        self._stop.set()
        self._thread.join(DRAIN_TIMEOUT_S)
        left = self._producer.flush(DRAIN_TIMEOUT_S)
        assert not self.failures, self.failures[:5]
        assert left == 0, f"{left} records were not acknowledged"
        return self.acked

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(self._pause_s):
            value = f"{self._name}-{number}"
            self._producer.produce(self._topic, value, key=str(number % 7), callback=self._done)
            self._producer.poll(0)
            number += 1

    def _done(self, error: Any, message: Any) -> None:  # noqa: ANN401 (confluent's, untyped)
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acked.add(message.value().decode())


class Consumer(Protocol):
    """A consumer of one library, used from one thread."""

    def poll(self) -> list[str]:
        """The next values, after a short wait at most."""

    def close(self) -> None:
        """Commits what was read and leaves the group."""


class LibrdkafkaConsumer:
    """A consumer of confluent-kafka that begins at the beginning."""

    def __init__(self, connection: Connection, topic: str, group: str) -> None:
        more = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        settings = librdkafka_settings(connection, **more, error_cb=lambda _: None)
        self._consumer = confluent_kafka.Consumer(settings, logger=logging.getLogger("consumer"))
        self._consumer.subscribe([topic])

    def poll(self) -> list[str]:
        """See Consumer."""
        messages = self._consumer.consume(500, timeout=POLL_S)
        values = [m.value().decode() for m in messages if m.error() is None]
        failed = [m.error() for m in messages if m.error() and not m.error().retriable()]
        assert not failed, failed[:3]
        return values

    def close(self) -> None:
        """See Consumer."""
        self._consumer.commit(asynchronous=False)
        self._consumer.close()


class KafkaPythonConsumer:
    """A consumer of kafka-python that begins at the beginning."""

    def __init__(self, connection: Connection, topic: str, group: str) -> None:
        settings = kafka_python_settings(
            connection, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        )
        self._consumer = kafka.KafkaConsumer(topic, **settings)

    def poll(self) -> list[str]:
        """See Consumer."""
        batches = self._consumer.poll(timeout_ms=int(POLL_S * 1000))
        return [record.value.decode() for records in batches.values() for record in records]

    def close(self) -> None:
        """See Consumer."""
        self._consumer.commit()
        self._consumer.close()


class Reader:
    """A consumer in a thread that counts what it reads."""

    def __init__(self, make: Callable[[], Consumer]) -> None:
        self.seen: Counter[str] = Counter()
        self._make = make
        self._failure: BaseException | None = None
        self._expected: set[str] | None = None
        self._give_up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Reader:
        """Begins."""
        self._thread.start()
        return self

    def finish(self, expected: set[str]) -> None:
        """Waits until all of `expected` was read, commits, and checks that each came once."""
        self._expected = expected
        self._thread.join(DRAIN_TIMEOUT_S)
        self._give_up.set()
        self._thread.join(DRAIN_TIMEOUT_S)
        if self._failure is not None:
            raise self._failure
        missing = expected - self.seen.keys()
        twice = {value: n for value, n in self.seen.items() if n > 1}
        assert not missing, f"{len(missing)} lost: {sorted(missing)[:5]}"
        assert not twice, f"{len(twice)} duplicated: {sorted(twice.items())[:5]}"

    def _run(self) -> None:
        try:
            consumer = self._make()
            while not self._complete() and not self._give_up.is_set():
                self.seen.update(consumer.poll())
            consumer.close()
        except BaseException as error:  # raised again by `finish`
            self._failure = error

    def _complete(self) -> bool:
        return self._expected is not None and self._expected <= self.seen.keys()

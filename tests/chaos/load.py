"""Clients at work while the cell is hurt: idempotent producers of two libraries, a reading group.

Each producer sends the values `<id>.0`, `<id>.1`, … in order, each to the partition of its number,
and notes when and where each was acknowledged.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import confluent_kafka
import kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos.cell import PASSWORD, USER, HurtCell
from tests.chaos.checker import Placed, Sent
from tests.clients.chaos import Consumed, commit

TOPIC = "chaos"
GROUP = "readers"
PARTITIONS = 6
READERS = 2
# Records a second of each producer.
RATE = 100
# Longer than any outage: a library must not give a record up for its age.
DELIVERY_S = 600
# Shorter pauses of a partition are counted nowhere.
PAUSE_S = 0.2
# Far beyond what anything at the end takes.
END_S = 180
LIBRDKAFKA: dict[str, object] = {
    "log_level": 0,
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
}


@dataclass
class Moments:
    """When a client had success with which partition, and how often in each second of the run."""

    began: float = field(default_factory=time.monotonic)
    last: dict[int, float] = field(default_factory=dict)
    longest_s: float = 0.0
    # The end of the longest pause, in seconds after the beginning, and the partition.
    longest_at: tuple[float, int] = (0.0, 0)
    # Those that count, each with its end as a moment.
    pauses: list[tuple[float, float]] = field(default_factory=list)
    seconds: Counter[int] = field(default_factory=Counter)

    def note(self, partition: int) -> None:
        """Notes a success of now."""
        now = time.monotonic()
        pause = now - self.last.get(partition, self.began)
        if pause > self.longest_s:
            self.longest_s, self.longest_at = pause, (now - self.began, partition)
        if pause > PAUSE_S:
            self.pauses.append((now, pause))
        self.last[partition] = now
        self.seconds[int(now - self.began)] += 1

    def went_on(self, since: float) -> bool:
        """Whether there was success with every partition after a moment."""
        return all(self.last.get(partition, 0.0) > since for partition in range(PARTITIONS))


class Library(Protocol):
    """A producer of some library, made to be driven alike."""

    def send(self, partition: int, sent: Sent, done: Callable[[object, int], None]) -> None:
        """Begins to send a record. `done` gets an error or None, and the offset."""

    def end(self) -> None:
        """Returns once each record was acknowledged or given up."""


class Librdkafka:
    """confluent-kafka."""

    def __init__(self, bootstrap: str, log: Path) -> None:
        handler = logging.FileHandler(log)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger = logging.getLogger(f"tests.chaos.{log.stem}")
        logger.addHandler(handler)
        self._producer = confluent_kafka.Producer(
            {
                **LIBRDKAFKA,
                # Why it began a new epoch: what was in flight then may be there twice.
                "log_level": 7,
                "debug": "eos,msg",
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": DELIVERY_S * 1000,
                "retry.backoff.ms": 20,
            },
            logger=logger,
        )

    def send(self, partition: int, sent: Sent, done: Callable[[object, int], None]) -> None:
        """See `Library.send`."""

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            offset = message.offset()
            done(error, -1 if offset is None else offset)

        self._producer.produce(TOPIC, sent.value(), partition=partition, on_delivery=delivered)
        self._producer.poll(0)

    def end(self) -> None:
        """See `Library.end`."""
        self._producer.flush(END_S)


class KafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap: str, log: Path) -> None:
        del log  # it says nothing that would help
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username=USER,
            sasl_plain_password=PASSWORD,
            enable_idempotence=True,
            acks="all",
            linger_ms=2,
            delivery_timeout_ms=DELIVERY_S * 1000,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            retry_backoff_ms=20,
            max_block_ms=DELIVERY_S * 1000,
        )

    def send(self, partition: int, sent: Sent, done: Callable[[object, int], None]) -> None:
        """See `Library.send`."""
        future = self._producer.send(TOPIC, sent.value(), partition=partition)
        future.add_callback(lambda metadata: done(None, metadata.offset))
        future.add_errback(lambda error: done(error, -1))

    def end(self) -> None:
        """See `Library.end`."""
        self._producer.flush(END_S)
        self._producer.close(END_S)


LIBRARIES: dict[str, Callable[[str, Path], Library]] = {
    "librdkafka": Librdkafka,
    "kafka-python": KafkaPython,
}


class Producing:
    """One producer, in a thread of its own, until it is stopped."""

    def __init__(self, number: int, name: str, bootstrap: str, log: Path) -> None:
        self.name = name
        self.moments = Moments()
        self.acked: dict[Sent, tuple[int, int]] = {}
        self.errors: list[str] = []
        self.sent = 0
        self._number, self._bootstrap, self._log = number, bootstrap, log
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            library = LIBRARIES[self.name](self._bootstrap, self._log)
            due = time.monotonic()
            while not self._leaving.wait(max(due - time.monotonic(), 0)):
                # What an outage held up is not made up for, so that the load stays as it is.
                due = max(due + 1 / RATE, time.monotonic() - 1)
                self._send(library)
            library.end()
        except Exception as error:  # reported with the run's result
            self.errors.append(f"the producer ended: {error!r}")

    def _send(self, library: Library) -> None:
        sent, partition = Sent(self._number, self.sent), self.sent % PARTITIONS
        self.sent += 1

        def done(error: object, offset: int) -> None:
            with self._lock:
                if error is None:
                    self.acked[sent] = (partition, offset)
                    self.moments.note(partition)
                else:
                    self.errors.append(f"{sent}: {error}")

        try:
            library.send(partition, sent, done)
        except BufferError as error:
            with self._lock:
                self.errors.append(f"{sent} was not taken: {error}")

    def stop(self) -> None:
        """Sends nothing more; returns once each record was acknowledged or given up."""
        self._leaving.set()
        self._thread.join(2 * END_S)
        if self._thread.is_alive():
            self.errors.append("the producer does not end")


class Seen(Consumed):
    """What a group read, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.moments = Moments()

    def take(self, message: confluent_kafka.Message) -> None:
        """Notes a record that was read."""
        super().take(message)
        with self.lock:
            self.moments.note(message.partition() or 0)


class Group:
    """Members of a group that commit what they read, until they are stopped."""

    def __init__(self, bootstrap: str) -> None:
        self.seen = Seen()
        self._bootstrap = bootstrap
        self._leaving = threading.Event()
        self._threads = [
            threading.Thread(target=self._read, name=f"reader {number}", daemon=True)
            for number in range(READERS)
        ]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        try:
            consumer = confluent_kafka.Consumer(
                {
                    **LIBRDKAFKA,
                    "bootstrap.servers": self._bootstrap,
                    "group.id": GROUP,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "session.timeout.ms": 10_000,
                    "heartbeat.interval.ms": 500,
                }
            )
            consumer.subscribe([TOPIC])
            try:
                while not self._leaving.is_set():
                    self._take(consumer)
            finally:
                consumer.close()
        except Exception as error:  # reported with the run's result
            self.seen.errors.append(f"the reader ended: {error!r}")

    def _take(self, consumer: confluent_kafka.Consumer) -> None:
        messages = consumer.consume(500, timeout=0.2)
        for message in messages:
            error = message.error()
            if error is None:
                self.seen.take(message)
            elif error.fatal():
                self.seen.errors.append(str(error))
        if messages:
            commit(consumer)

    def stop(self) -> None:
        """Ends the members."""
        self._leaving.set()
        for thread in self._threads:
            thread.join(END_S)


class Load:
    """All clients of a run."""

    def __init__(self, cell: HurtCell) -> None:
        create_topic(cell.bootstrap)
        self.group = Group(cell.bootstrap)
        self.producers = [
            Producing(number, name, cell.bootstrap, cell.folder / "logs" / f"{name}.log")
            for number, name in enumerate(LIBRARIES)
        ]

    def moments(self) -> dict[str, Moments]:
        """When each client had success."""
        of_producers = {producer.name: producer.moments for producer in self.producers}
        return {**of_producers, "group": self.group.seen.moments}

    def acked(self) -> dict[Sent, tuple[int, int]]:
        """Where all acknowledged records went."""
        return {sent: at for producer in self.producers for sent, at in producer.acked.items()}

    def errors(self) -> list[str]:
        """What clients gave up."""
        of_producers = [f"{p.name}: {error}" for p in self.producers for error in p.errors]
        return [*of_producers, *(f"group: {error}" for error in self.group.seen.errors)]

    def all_went_on(self, since: float) -> bool:
        """Whether each client had success with each partition after a moment."""
        return all(moments.went_on(since) for moments in self.moments().values())


def create_topic(bootstrap: str) -> None:
    """The topic that a run writes to."""
    admin = AdminClient({**LIBRDKAFKA, "bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values():
        created.result(END_S)


def read_log(bootstrap: str) -> Iterator[Placed]:
    """All records of the topic, by partition and offset, as a client reads them."""
    consumer = confluent_kafka.Consumer(
        {
            **LIBRDKAFKA,
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "enable.partition.eof": True,
        }
    )
    try:
        for partition in range(PARTITIONS):
            beginning = confluent_kafka.OFFSET_BEGINNING
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, beginning)])
            while True:
                message = consumer.poll(END_S)
                assert message is not None, f"no answer for partition {partition}"
                error = message.error()
                if error is None:
                    assert message.partition() == partition
                    yield Placed(partition, message.offset() or 0, message.value() or b"")
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    break
    finally:
        consumer.close()

"""A seeded load: writers and readers of one tenant, as several clients that do not expect faults.

Every value begins with its writer's principal, by which the scan of the log knows whose a batch is.
The service's own user writes and reads for an API key and a member, as for REST.
Compressed and plain batches, idempotent and plain producers, a group that commits and readers that
begin anew: what is handed over is more than what was written, and differs from run to run only by
what faults make of it.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import confluent_kafka
import kafka
from kafka.errors import KafkaError

from provisioning.kafka import (
    Access,
    Browse,
    Clients,
    KafkaCallError,
    NewRecord,
    browse,
    produce,
)
from tests.metering.proof.tenants import USERS, Tenant, kafka_python_settings

KEY, MEMBER = "ApiKey:key_oftheload", "Member:usr_oftheload"
WRITERS, READERS = USERS[:2], USERS[2:]
CODECS = ("none", "lz4", "zstd")
VALUE_BYTES_MAX = 2000
OWN_EVERY = 4
FLUSH_SECONDS = 120.0
# Small answers: what a broker handed over never waits in its socket for the proxy.
FETCH_BYTES = 256 * 1024


@dataclass(frozen=True)
class Shape:
    """What a tenant's load is like. `pause_s`: between two bursts of a writer."""

    topics: Sequence[str]
    partitions: int
    burst_records: int
    pause_s: float


@dataclass
class Progress:
    """What the clients themselves count. It only shows progress, and the proof does not use it."""

    written: int = 0
    refused: int = 0
    """Records that were not taken because the cluster's traffic is refused."""
    throttled_ms: int = 0
    """How long brokers asked the writers to wait."""
    read: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


class TenantLoad:
    """The threads of one tenant's load."""

    def __init__(self, tenant: Tenant, shape: Shape, seed: int) -> None:
        self.tenant, self.shape, self.seed = tenant, shape, seed
        self.progress = Progress()
        self._writing_done = threading.Event()
        self._reading_done = threading.Event()
        self._writers = [self._thread(self._write, user) for user in WRITERS]
        # A name of the draws alone: they log in as the service.
        self._writers.append(self._thread(self._ask_for_others, "rest"))
        self._readers = [
            self._thread(self._read_as_group, READERS[0]),
            self._thread(self._read_all_over, READERS[1]),
        ]

    def start(self) -> None:
        """Begins to write and to read."""
        for thread in [*self._writers, *self._readers]:
            thread.start()

    def stop_writing(self) -> None:
        """Ends the writers, once all that they sent is acknowledged."""
        self._writing_done.set()
        for thread in self._writers:
            thread.join()

    def stop_reading(self) -> None:
        """Ends the readers."""
        self._reading_done.set()
        for thread in self._readers:
            thread.join()

    def _thread(self, work: Callable[[str, random.Random], None], user: str) -> threading.Thread:
        # Seeded with a text: the same in every process.
        draw = random.Random(f"{self.seed} {self.tenant.number} {user}")

        def guarded() -> None:
            try:
                work(user, draw)
            except Exception as error:  # the story raises it once the load ends
                self.progress.failures.append(f"{user}: {error!r}")

        return threading.Thread(target=guarded, daemon=True)

    def _write(self, user: str, draw: random.Random) -> None:
        producer = confluent_kafka.Producer(
            {
                **self.tenant.login(user),
                "enable.idempotence": user == WRITERS[0],
                "compression.codec": draw.choice(CODECS),
                "linger.ms": 5,
                "message.timeout.ms": 600_000,
                "throttle_cb": self._throttled,
            }
        )
        number = 0
        while not self._writing_done.is_set():
            for _ in range(draw.randrange(1, self.shape.burst_records)):
                value = f"User:{user} {number} ".encode()
                value += draw.randbytes(draw.randrange(VALUE_BYTES_MAX // 2)) + b" " * (
                    draw.randrange(VALUE_BYTES_MAX // 2)
                )
                partition = draw.randrange(self.shape.partitions)
                self._send(producer, draw.choice(self.shape.topics), partition, value)
                number += 1
            producer.poll(0)
            self._writing_done.wait(draw.uniform(0, 2 * self.shape.pause_s))
        if producer.flush(FLUSH_SECONDS):
            self.progress.failures.append(f"{user}: not all is acknowledged")

    def _send(
        self, producer: confluent_kafka.Producer, topic: str, partition: int, value: bytes
    ) -> None:
        while True:
            try:
                producer.produce(topic, value, partition=partition, on_delivery=self._delivered)
            except BufferError:
                producer.poll(0.1)
            else:
                return

    def _throttled(self, event: confluent_kafka.ThrottleEvent) -> None:
        self.progress.throttled_ms += round(event.throttle_time * 1000)

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        if error is None:
            self.progress.written += len(message.value() or b"")
        elif error.code() == confluent_kafka.KafkaError.POLICY_VIOLATION:
            # A budget acts. What follows goes on by itself.
            self.progress.refused += 1
        else:
            self.progress.failures.append(f"a record is not acknowledged: {error}")

    def _ask_for_others(self, _user: str, draw: random.Random) -> None:
        """One record for a key, one page for a member, again and again, through the service.

        Now and then the service reads a page for itself, which nobody pays for.
        """
        clients, number = Clients(), 0
        while not self._writing_done.is_set():
            access = Access(clients, self.tenant.service())
            value = f"{KEY} {number} ".encode() + draw.randbytes(draw.randrange(VALUE_BYTES_MAX))
            partition, topic = draw.randrange(self.shape.partitions), draw.choice(self.shape.topics)
            page = Browse(draw.choice(("oldest", "newest")), limit=draw.randrange(1, 100))
            # The broker may be replaced meanwhile. What was written and handed over counts anyway.
            with contextlib.suppress(KafkaCallError):
                produce(access.paid_by(KEY), topic, NewRecord(value=value, partition=partition))
            with contextlib.suppress(KafkaCallError):
                browse(access.paid_by(MEMBER), topic, page)
            if number % OWN_EVERY == 0:
                with contextlib.suppress(KafkaCallError):
                    browse(access, topic, page)
            number += 1
            self._writing_done.wait(draw.uniform(0, 4 * self.shape.pause_s))

    def _read_as_group(self, user: str, _draw: random.Random) -> None:
        """Follows the end and commits."""
        consumer = confluent_kafka.Consumer(
            {
                **self.tenant.login(user),
                "group.id": "followers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": True,
                "auto.commit.interval.ms": 500,
                "fetch.max.bytes": FETCH_BYTES,
                "max.partition.fetch.bytes": FETCH_BYTES,
                # librdkafka wants it below the size of a fetch.
                "message.max.bytes": FETCH_BYTES // 2,
            }
        )
        consumer.subscribe(list(self.shape.topics))
        try:
            while not self._reading_done.is_set():
                self._took(user, consumer.consume(500, timeout=0.2))
        finally:
            consumer.close()

    def _took(self, user: str, messages: Sequence[confluent_kafka.Message]) -> None:
        taken = sum(len(m.value() or b"") for m in messages if m.error() is None)
        self.progress.read[user] = self.progress.read.get(user, 0) + taken

    def _read_all_over(self, user: str, draw: random.Random) -> None:
        """Another library; begins one topic anew again and again, each time as a new client."""
        while not self._reading_done.is_set():
            try:
                self._read_for_a_while(user, draw)
            except KafkaError:
                # The broker is being replaced.
                self._reading_done.wait(0.1)

    def _read_for_a_while(self, user: str, draw: random.Random) -> None:
        consumer = kafka.KafkaConsumer(
            **kafka_python_settings(self.tenant, user),
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=FETCH_BYTES,
            enable_auto_commit=False,
        )
        try:
            topic = draw.choice(self.shape.topics)
            places = [kafka.TopicPartition(topic, p) for p in range(self.shape.partitions)]
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            for _ in range(draw.randrange(5, 40)):
                if self._reading_done.is_set():
                    return
                batches = consumer.poll(timeout_ms=200, max_records=500)
                taken = sum(len(r.value) for records in batches.values() for r in records)
                self.progress.read[user] = self.progress.read.get(user, 0) + taken
        finally:
            consumer.close()

"""Idempotent producers and a consumer group while the broker is killed again and again.

`run_chaos` is what `test_crashes.py` runs briefly and `make chaos` at length. Afterwards the log is
read from storage by `tests.brokers.logscan`, which shares no code with the engine.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.batches import Record
from tests.brokers.logscan import LogScan
from tests.clients.producers import PRODUCERS, Acks
from tests.clients.servers import BrokerServer, Supervisor

TOPIC = "chaos"
GROUP = "readers"
PARTITIONS = 3
CONSUMERS = 2
# Files are ended and split often, so that kills hit all of that too.
LANE = {"file_bytes_first": 65536, "file_bytes_max": 1 << 20, "roll_after_ms": 500}
# Far longer than any step takes: a run that hangs fails with the name of the step.
TIMEOUT_S = 900.0

# Why a commit may fail around a kill or a rebalance.
CUT_OFF = {
    "_NO_OFFSET",
    "_TRANSPORT",
    "_TIMED_OUT",
    "_WAIT_COORD",
    "_ALL_BROKERS_DOWN",
    "_STATE",
    "ILLEGAL_GENERATION",
    "REBALANCE_IN_PROGRESS",
    "UNKNOWN_MEMBER_ID",
    "NOT_COORDINATOR",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "REQUEST_TIMED_OUT",
}


class ChaosError(AssertionError):
    """A run lost, duplicated or reordered records, or a client gave up."""


@dataclass
class Consumed:
    """What the group read: partition → offset → value, and how often a record came again."""

    values: dict[int, dict[int, bytes]] = field(default_factory=dict)
    repeated: int = 0
    errors: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, message: confluent_kafka.Message) -> None:
        """Notes a record that was read; counts one that was read before as repeated."""
        partition, offset = message.partition() or 0, message.offset() or 0
        value = message.value() or b""
        with self.lock:
            known = self.values.setdefault(partition, {})
            self.repeated += offset in known
            if known.setdefault(offset, value) != value:
                was = known[offset]
                self.errors.append(f"{partition}@{offset} was {was!r}, then {value!r}")

    def count(self) -> int:
        """Different records that were read."""
        with self.lock:
            return sum(len(offsets) for offsets in self.values.values())


def consume(bootstrap: str, consumed: Consumed, done: threading.Event) -> None:
    """One member of the group, until `done`; commits what it has read."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
        }
    )
    consumer.subscribe([TOPIC])
    try:
        while not done.is_set():
            messages = consumer.consume(500, timeout=0.2)
            for message in messages:
                error = message.error()
                if error is None:
                    consumed.take(message)
                elif error.fatal():
                    consumed.errors.append(str(error))
            if messages:
                commit(consumer)
        commit(consumer)
    finally:
        consumer.close()


def commit(consumer: confluent_kafka.Consumer) -> None:
    """Commits the position. One that a kill or a rebalance cut off is made up for by the next."""
    try:
        consumer.commit(asynchronous=False)
    except confluent_kafka.KafkaException as error:
        failure: confluent_kafka.KafkaError = error.args[0]
        if not failure.retriable() and failure.name() not in CUT_OFF:
            raise


class Run:
    """One run: a supervised broker, producers, a group, and kills in between."""

    def __init__(
        self, folder: Path, records: int, kills: int, seed: int, clients: Sequence[str]
    ) -> None:
        self.random = random.Random(seed)
        self.kills = kills
        self.broker = BrokerServer(folder, lane=LANE)
        self.supervisor = Supervisor(self.broker)
        self.clients = list(clients)
        share = records // len(self.clients)
        self.counts = [share] * len(self.clients)
        self.counts[0] += records - share * len(self.clients)
        self.acks = [Acks() for _ in self.clients]
        self.consumed = Consumed()
        self.deadline = time.monotonic() + TIMEOUT_S

    @property
    def records(self) -> int:
        """Records that are produced in all."""
        return sum(self.counts)

    def acked(self) -> int:
        """Records that were acknowledged so far."""
        return sum(len(acks.places) for acks in self.acks)

    def play(self) -> LogScan:
        """Runs to the end, kills the broker a last time, and reads its log from storage."""
        done = threading.Event()
        with self.supervisor:
            create_topic(self.broker.bootstrap, TOPIC, PARTITIONS)
            readers = [
                threading.Thread(
                    target=consume, args=(self.broker.bootstrap, self.consumed, done), daemon=True
                )
                for _ in range(CONSUMERS)
            ]
            writers = [
                threading.Thread(target=self._produce, args=(who,), daemon=True)
                for who in range(len(self.clients))
            ]
            for thread in [*readers, *writers]:
                thread.start()
            for point in self._kill_points():
                self._wait_for_acks(point)
                self.supervisor.kill()
            self._wait_for_acks(self.records)
            for thread in writers:
                thread.join()
            self._wait(lambda: self.consumed.count() >= self.records, "the group to read all")
            done.set()
            for thread in readers:
                thread.join()
            self._check_lag()
        return self.broker.scan()

    def _produce(self, who: int) -> None:
        acks = self.acks[who]
        try:
            produce = PRODUCERS[self.clients[who]]
            produce(self.broker.bootstrap, TOPIC, who, self.counts[who], acks)
        except Exception as error:  # reported by the thread that waits
            acks.failed(f"{self.clients[who]}: {error!r}")

    def _kill_points(self) -> list[int]:
        """After how many acknowledgements the broker is killed."""
        return sorted(self.random.sample(range(1, int(self.records * 0.97)), self.kills))

    def _wait_for_acks(self, count: int) -> None:
        self._wait(lambda: self.acked() >= count, f"{count} acks")

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        while not holds():
            errors = [error for acks in self.acks for error in acks.errors] + self.consumed.errors
            if errors:
                raise ChaosError("; ".join(errors[:5]))
            if time.monotonic() > self.deadline:
                have = f"{self.acked()} acked, {self.consumed.count()} read of {self.records}"
                message = f"waited too long for {what}: {have}"
                raise ChaosError(message)
            with self.acks[0].changed:
                self.acks[0].changed.wait(0.02)

    def _check_lag(self) -> None:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.broker.bootstrap, "group.id": GROUP}
        )
        try:
            partitions = [confluent_kafka.TopicPartition(TOPIC, p) for p in range(PARTITIONS)]
            for place in consumer.committed(partitions, timeout=30):
                _, end = consumer.get_watermark_offsets(place, timeout=30)
                # A partition that got no record has nothing to commit.
                if place.offset != end and end > 0:
                    message = f"partition {place.partition}: committed {place.offset}, end {end}"
                    raise ChaosError(message)
        finally:
            consumer.close()


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """The topic that a run writes to."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions)]).values():
        future.result()


def check_log(run: Run, records: Iterable[tuple[int, Record]]) -> None:
    """Checks that each record is in the log once, in order per producer, where its ack said.

    `records` are those of the log, with their partitions. The records that the group read must be
    the same. Raises `ChaosError`.
    """
    places: dict[tuple[int, int], tuple[int, int]] = {}
    last: dict[tuple[int, int], int] = {}
    for partition, record in records:
        who, number = (int(part) for part in (record.value or b"").split(b"."))
        place = (partition, record.offset)
        if (who, number) in places:
            message = f"{who}.{number} is at {places[who, number]} and at {place}"
            raise ChaosError(message)
        places[who, number] = place
        if last.get((who, partition), -1) >= number:
            message = f"{who}.{number} follows {last[who, partition]} in partition {partition}"
            raise ChaosError(message)
        last[who, partition] = number
        read = run.consumed.values.get(partition, {}).get(record.offset)
        if read != record.value:
            message = f"{place} is {record.value!r}, the group read {read!r}"
            raise ChaosError(message)
    for who, acks in enumerate(run.acks):
        for number in range(run.counts[who]):
            if places.get((who, number)) != acks.places.get(number):
                where = (places.get((who, number)), acks.places.get(number))
                message = f"{who}.{number} is at {where[0]}, its ack said {where[1]}"
                raise ChaosError(message)
    if len(places) != run.records:
        message = f"{len(places)} records in the log, {run.records} were sent"
        raise ChaosError(message)


def run_chaos(
    folder: Path, *, records: int, kills: int, seed: int, clients: Sequence[str]
) -> dict[str, object]:
    """A whole run with its checks; returns a summary. Raises `ChaosError`."""
    run = Run(folder, records, kills, seed, clients)
    begin = time.monotonic()
    scan = run.play()
    check_log(run, scan.records(TOPIC))
    return {
        "records": run.records,
        "kills": run.supervisor.starts - 1,
        "seed": seed,
        "clients": run.clients,
        "lanes": len(scan.lanes),
        "read_again": run.consumed.repeated,
        "seconds": round(time.monotonic() - begin, 1),
    }

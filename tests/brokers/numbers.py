"""The numbers from 0 on, produced and read one after another while something goes wrong."""

from __future__ import annotations

import threading
import time
from typing import Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "numbers"
MORE = 200
TIMEOUT_S = 90


class Numbers:
    """Produces 0, 1, 2, … one after another, and reads what the topic has, until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.acked = 0
        self.read: list[int] = []
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._all_produced = threading.Event()
        self._failed = False
        self._producing = threading.Thread(target=self._produce)
        self._consuming = threading.Thread(target=self._consume)

    def wait_for_more(self) -> None:
        """Waits until many more were acknowledged and read, each of them produced after this."""
        with self._changed:
            goal = self.acked + MORE
            reached = self._changed.wait_for(
                lambda: self.acked >= goal and len(self.read) >= goal, TIMEOUT_S
            )
        assert reached, f"{self.acked} acknowledged, {len(self.read)} read, {goal} wanted"

    def _produce(self) -> None:
        settings = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 0}
        producer = Producer(settings)
        number = 0
        while not self._stop.is_set():
            acked = threading.Event()
            producer.produce(
                TOPIC,
                str(number).encode(),
                partition=0,
                on_delivery=lambda error, _, acked=acked: error or acked.set(),
            )
            assert producer.flush(TIMEOUT_S) == 0
            assert acked.is_set()
            number += 1
            with self._changed:
                self.acked = number
                self._changed.notify_all()

    def _consume(self) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "readers"})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while not self._failed and (not self._all_produced.is_set() or len(self.read) < self.acked):
            message = consumer.poll(0.1)
            if message is None:
                continue
            assert message.error() is None, message.error()
            with self._changed:
                self.read.append(int(message.value()))
                self._changed.notify_all()
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, len(self.read))], asynchronous=False)
        consumer.close()

    def __enter__(self) -> Self:
        """Begins."""
        self._producing.start()
        self._consuming.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Waits until all that was produced is read, unless the test has failed already."""
        self._failed = kind is not None
        self._stop.set()
        self._producing.join()
        self._all_produced.set()
        self._consuming.join()


def make_topic(bootstrap: str, name: str) -> None:
    """Makes a topic, and tries again until the broker can write it to the metadata store."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    until = time.monotonic() + TIMEOUT_S
    while True:
        [made] = admin.create_topics([NewTopic(name, 1, 1)], operation_timeout=30).values()
        try:
            made.result()
            return
        except KafkaException as error:
            # An earlier try, which returned an error, has made it.
            if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                return
            if time.monotonic() > until:
                raise


def read_all(bootstrap: str, count: int) -> list[int]:
    """The values of the topic from its beginning; fails where there are more than `count`."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "all"})
    partition = TopicPartition(TOPIC, 0, 0)
    assert consumer.get_watermark_offsets(partition, TIMEOUT_S) == (0, count)
    consumer.assign([partition])
    read: list[int] = []
    while len(read) < count:
        messages = consumer.consume(count - len(read), TIMEOUT_S)
        assert messages, f"{len(read)} of {count} were read"
        assert not any(message.error() for message in messages)
        read += [int(message.value()) for message in messages]
    consumer.close()
    return read

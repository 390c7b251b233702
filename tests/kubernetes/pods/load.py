"""Real Kafka clients that produce and read while brokers end and start."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import confluent_kafka

# A time limit that a test reaches only where something is wrong.
TIMEOUT_S = 180.0
# How many records are produced and not acknowledged yet: enough to be affected by whatever happens.
AHEAD = 200

Place = tuple[int, int]


class Producer:
    """An idempotent producer, which produces numbers from `first` on until its block ends.

    Each value is the number, after `name` where there is one. `places` holds the partition and the
    offset of each number. Any error fails the test.
    """

    def __init__(
        self, login: Mapping[str, object], topic: str, first: int = 0, name: str = ""
    ) -> None:
        self.places: dict[int, Place] = {}
        self.sent = first
        self._first = first
        self._topic = topic
        self._name = name
        self._failures: list[str] = []
        self._changed = threading.Condition()
        self._leaving = threading.Event()
        self._client = confluent_kafka.Producer(
            {**login, "enable.idempotence": True, "batch.num.messages": 20}
        )
        self._thread = threading.Thread(target=self._produce, daemon=True)

    def wait_for_more(self, count: int) -> None:
        """Waits until `count` records are acknowledged that were produced after this call."""
        due = self.sent + count
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._failures or len(self.places) + self._first >= due, TIMEOUT_S
            )
            assert not self._failures, self._failures
            assert done, f"{len(self.places)} acknowledged, {due - self._first} were due"

    def __enter__(self) -> Self:
        """Starts to produce."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops, and waits for all acknowledgements unless the block failed."""
        self._leaving.set()
        self._thread.join()
        left = self._client.flush(TIMEOUT_S) if error is None else 0
        # The client disconnects once nothing refers to it.
        del self._client
        if error is None:
            assert left == 0
            assert not self._failures, self._failures
            assert len(self.places) == self.sent - self._first

    def _produce(self) -> None:
        while not self._leaving.is_set():
            if len(self._client) < AHEAD:
                number = self.sent
                self.sent += 1
                value = f"{self._name} {number}".strip()
                self._client.produce(self._topic, value, on_delivery=self._noted(number))
                self._client.poll(0)
            else:
                self._client.poll(0.05)

    def _noted(self, number: int):  # noqa: ANN202 (the client's)
        def report(error: object, message: confluent_kafka.Message) -> None:
            with self._changed:
                if error is None:
                    self.places[number] = (message.partition(), message.offset())
                else:
                    self._failures.append(str(error))
                self._changed.notify_all()

        return report


def consume(login: Mapping[str, object], topic: str, count: int) -> dict[int, Place]:
    """Reads `count` records of a topic from its beginning. Returns the place of each number.

    Fails where a number is read twice.
    """
    consumer = confluent_kafka.Consumer(
        {
            **login,
            "group.id": f"readers-of-{topic}-{count}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    places: dict[int, Place] = {}
    try:
        consumer.subscribe([topic])
        while len(places) < count:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"{len(places)} of {count}"
            assert message.error() is None, message.error()
            number = int((message.value() or b"").split()[-1])
            assert number not in places, f"{number} is there twice"
            places[number] = (message.partition(), message.offset())
    finally:
        consumer.close()
    return places

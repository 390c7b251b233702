"""A consumer that decodes one batch at a time, and notices where it decodes one in vain."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Message, TopicPartition

from provisioning.kafka.connection import Connection

# librdkafka's settings with which it fetches one batch. For the last time the next fetch waits
# after one that gave records: long enough to take these, and then the partition away.
BATCH_AT_A_TIME: dict[str, object] = {
    "fetch.message.max.bytes": 1,
    "queued.min.messages": 1,
    "fetch.queue.backoff.ms": 5,
    "statistics.interval.ms": 50,
}
LOOK_S = 0.001
MESSAGES_MAX = 10_000
# How long a batch may take to be decoded.
DECODE_S = 3.0
# librdkafka counts answers in which it found no whole record, and takes them for cut off. Brokers
# cut no batch off, so several in a row without a record mean that the batch is damaged.
PARTIAL_MIN = 3


@dataclass
class BatchConsumer:
    """Decodes nothing behind the batch that it is asked for."""

    consumer: Consumer = field(init=False)
    connection: Connection
    _partial: int = 0
    _partial_before: int = 0

    def __post_init__(self) -> None:
        settings = self.connection.consumer_settings("read_committed") | BATCH_AT_A_TIME
        self.consumer = Consumer(settings | {"stats_cb": self._note_statistics})

    @property
    def is_in_vain(self) -> bool:
        """Whether it took several answers for cut off since it began with the last batch."""
        return self._partial - self._partial_before >= PARTIAL_MIN

    def take(self, place: TopicPartition) -> list[Message]:
        """The messages of the first batch at or behind a place, or the error there.

        None where it is in vain, or after `DECODE_S`: then it may hang.
        """
        self._partial_before = self._partial
        self.consumer.assign([place])
        deadline = time.monotonic() + DECODE_S
        messages: list[Message] = []
        try:
            while not messages and time.monotonic() < deadline and not self.is_in_vain:
                # `consume` with a time limit would wait for more, while the next batch is fetched.
                messages = self.consumer.consume(MESSAGES_MAX, timeout=0)
                if not messages:
                    time.sleep(LOOK_S)
            while messages and (more := self.consumer.consume(MESSAGES_MAX, timeout=0)):
                messages += more
        finally:
            self.consumer.assign([])
        return messages

    def _note_statistics(self, text: str) -> None:
        """Takes librdkafka's statistics, which are JSON."""
        self._partial = sum(broker["rxpartial"] for broker in json.loads(text)["brokers"].values())

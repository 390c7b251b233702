"""Three libraries of Python: confluent-kafka, which is librdkafka, kafka-python and aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import aiokafka
import confluent_kafka
import kafka

from tests.clients.by_time.programs import ALL_CODECS
from tests.clients.by_time.scenario import Batch, Record

# Never reached when all is well.
LIMIT_S = 60
# Longer than it takes to hand a batch over, so that the log gets it as one.
LINGER_MS = 200

Answer = TypeVar("Answer")


class Librdkafka:
    """confluent-kafka."""

    codecs = ALL_CODECS
    nothing: int | None = confluent_kafka.OFFSET_END

    def produce(
        self, bootstrap: str, topic: str, batches: Sequence[Batch], codec: str
    ) -> list[int]:
        """As `Library.produce`."""
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": LINGER_MS}
        )
        offsets: list[int] = []

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            assert error is None, error
            offsets.append(message.offset() or 0)

        for batch in batches:
            for record in batch:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    timestamp=record.timestamp,
                    on_delivery=delivered,
                )
            assert producer.flush(LIMIT_S) == 0
        return offsets

    def offsets(self, bootstrap: str, topic: str, times: Sequence[int]) -> list[int | None]:
        """As `Library.offsets`."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
        asked = [[confluent_kafka.TopicPartition(topic, 0, ms)] for ms in times]
        answers = [consumer.offsets_for_times(partitions, LIMIT_S) for partitions in asked]
        consumer.close()
        return [partition.offset for (partition,) in answers]

    def reset(self, bootstrap: str, topic: str, group: str, time: int, count: int) -> list[Record]:
        """As `Library.reset`."""

        def at_time(
            consumer: confluent_kafka.Consumer, assigned: list[confluent_kafka.TopicPartition]
        ) -> None:
            for partition in assigned:
                partition.offset = time
            consumer.assign(consumer.offsets_for_times(assigned, LIMIT_S))

        consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        consumer.subscribe([topic], on_assign=at_time)
        messages: list[Any] = []
        while len(messages) < count:
            message = consumer.poll(LIMIT_S)
            assert message is not None, f"{len(messages)} of {count} records"
            assert message.error() is None, message.error()
            messages.append(message)
        consumer.close()
        return [
            Record(m.offset(), m.timestamp()[1], m.key().decode(), m.value().decode())
            for m in messages
        ]


def as_record(message: Any) -> Record:
    """A record of kafka-python or of aiokafka."""
    return Record(message.offset, message.timestamp, message.key.decode(), message.value.decode())


class _SeekWhenAssigned(kafka.ConsumerRebalanceListener):  # type: ignore[misc] # untyped
    """Polls until a partition is assigned must be long ones: the client's join can miss its end."""

    def __init__(self, consumer: kafka.KafkaConsumer, offset: int) -> None:
        self._consumer = consumer
        self._offset = offset

    def on_partitions_assigned(self, assigned: set[kafka.TopicPartition]) -> None:
        """Moves it to the offset."""
        for partition in assigned:
            self._consumer.seek(partition, self._offset)

    def on_partitions_revoked(self, revoked: set[kafka.TopicPartition]) -> None:
        """Nothing was committed, and nothing is."""


class KafkaPython:
    """kafka-python."""

    codecs = ALL_CODECS
    nothing: int | None = None

    def produce(
        self, bootstrap: str, topic: str, batches: Sequence[Batch], codec: str
    ) -> list[int]:
        """As `Library.produce`."""
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=LINGER_MS,
        )
        sent = []
        for batch in batches:
            for record in batch:
                key, value = record.key.encode(), record.value.encode()
                sent.append(producer.send(topic, value, key, timestamp_ms=record.timestamp))
            producer.flush(LIMIT_S)
        offsets = [future.get(LIMIT_S).offset for future in sent]
        producer.close()
        return offsets

    def offsets(self, bootstrap: str, topic: str, times: Sequence[int]) -> list[int | None]:
        """As `Library.offsets`."""
        partition = kafka.TopicPartition(topic, 0)
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
        answers = [consumer.offsets_for_times({partition: ms})[partition] for ms in times]
        consumer.close()
        return [answer and answer.offset for answer in answers]

    def reset(self, bootstrap: str, topic: str, group: str, time: int, count: int) -> list[Record]:
        """As `Library.reset`."""
        partition = kafka.TopicPartition(topic, 0)
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=group, max_poll_records=count
        )
        offset = consumer.offsets_for_times({partition: time})[partition].offset
        consumer.subscribe([topic], listener=_SeekWhenAssigned(consumer, offset))
        records: list[Record] = []
        while len(records) < count:
            polled = consumer.poll(LIMIT_S * 1000)
            assert polled, f"{len(records)} of {count} records"
            records += [as_record(message) for message in polled[partition]]
        consumer.close()
        return records


class Aiokafka:
    """aiokafka."""

    codecs = ALL_CODECS
    nothing: int | None = None

    def produce(
        self, bootstrap: str, topic: str, batches: Sequence[Batch], codec: str
    ) -> list[int]:
        """As `Library.produce`."""

        async def run() -> list[int]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                linger_ms=LINGER_MS,
            )
            await producer.start()
            offsets = []
            for batch in batches:
                sent = [
                    await producer.send(
                        topic,
                        record.value.encode(),
                        record.key.encode(),
                        timestamp_ms=record.timestamp,
                    )
                    for record in batch
                ]
                offsets += [metadata.offset for metadata in await asyncio.gather(*sent)]
            await producer.stop()
            return offsets

        return _within_limit(run)

    def offsets(self, bootstrap: str, topic: str, times: Sequence[int]) -> list[int | None]:
        """As `Library.offsets`."""
        partition = aiokafka.TopicPartition(topic, 0)

        async def run() -> list[int | None]:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap)
            await consumer.start()
            answers = [(await consumer.offsets_for_times({partition: ms})) for ms in times]
            await consumer.stop()
            return [answer[partition] and answer[partition].offset for answer in answers]

        return _within_limit(run)

    def reset(self, bootstrap: str, topic: str, group: str, time: int, count: int) -> list[Record]:
        """As `Library.reset`."""
        partition = aiokafka.TopicPartition(topic, 0)

        async def run() -> list[Record]:
            consumer = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group)
            await consumer.start()
            answer = await consumer.offsets_for_times({partition: time})
            consumer.seek(partition, answer[partition].offset)
            records = [as_record(await consumer.getone()) for _ in range(count)]
            await consumer.stop()
            return records

        return _within_limit(run)


def _within_limit(run: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
    return asyncio.run(asyncio.wait_for(run(), LIMIT_S))

"""Kafka's own client, whose objects are made and called from here.

They are in a JVM that is started with Kafka's jars, as the other tools of the tests, and with the
jar of py4j, which Spark brings along.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path

from tests.clients.by_time.programs import ALL_CODECS
from tests.clients.by_time.scenario import Batch, Record
from tests.peer.jars import HERE, classpath
from tests.peer.processes import bound_command, stop_servers

LIMIT_S = 60
# Longer than it takes to hand a batch over, so that the log gets it as one.
LINGER_MS = 500
STRINGS = "org.apache.kafka.common.serialization.String"


class Java:
    """Kafka's client, in a JVM that lives as long as the block."""

    codecs = ALL_CODECS
    nothing: int | None = None

    def __init__(self) -> None:
        command = [
            *("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
            *("-cp", os.pathsep.join([find_jar_path(), classpath()])),
            *("py4j.GatewayServer", "--enable-auth", "0"),
        ]
        self._process = subprocess.Popen(
            bound_command(command), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        port, token = (self._process.stdout.readline().decode().strip() for _ in range(2))
        parameters = GatewayParameters(
            port=int(port),
            auth_token=token,
            auto_convert=True,
            # It would ask the JVM to forget each object, also when that has ended.
            enable_memory_management=False,
        )
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self._clients: Any = self._gateway.jvm.org.apache.kafka.clients

    def produce(
        self, bootstrap: str, topic: str, batches: Sequence[Batch], codec: str
    ) -> list[int]:
        """As `Library.produce`."""
        settings = {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": str(LINGER_MS),
            "key.serializer": f"{STRINGS}Serializer",
            "value.serializer": f"{STRINGS}Serializer",
        }
        producer = self._clients.producer.KafkaProducer(settings)
        record_of = self._clients.producer.ProducerRecord
        offsets = []
        for batch in batches:
            sent = [
                producer.send(record_of(topic, None, record.timestamp, record.key, record.value))
                for record in batch
            ]
            producer.flush()
            offsets += [future.get().offset() for future in sent]
        producer.close()
        return offsets

    def offsets(self, bootstrap: str, topic: str, times: Sequence[int]) -> list[int | None]:
        """As `Library.offsets`."""
        consumer = self._consumer(bootstrap)
        answers = [self._offset_at(consumer, topic, ms) for ms in times]
        consumer.close()
        return answers

    def reset(self, bootstrap: str, topic: str, group: str, time: int, count: int) -> list[Record]:
        """As `Library.reset`."""
        consumer = self._consumer(bootstrap, **{"group.id": group})
        consumer.subscribe([topic])
        while not consumer.assignment():
            assert consumer.poll(self._ms(50)).count() == 0, "records before the reset"
        partition = self._partition(topic)
        consumer.seek(partition, self._offset_at(consumer, topic, time))
        return self._take(consumer, topic, count)

    def read_since(self, bootstrap: str, topic: str, group: str, age: str, count: int) -> list[int]:
        """The offsets of `count` records, from those of this age on (ISO 8601, such as `PT1H`).

        The client looks the first one up by itself, for a group that has committed nothing.
        """
        since = {"group.id": group, "auto.offset.reset": f"by_duration:{age}"}
        consumer = self._consumer(bootstrap, **since)
        consumer.subscribe([topic])
        return [record.offset for record in self._take(consumer, topic, count)]

    def _take(self, consumer: Any, topic: str, count: int) -> list[Record]:
        """Polls so many records and closes the consumer."""
        records: list[Record] = []
        while len(records) < count:
            polled = consumer.poll(self._ms(LIMIT_S * 1000)).records(self._partition(topic))
            assert polled, f"{len(records)} of {count} records"
            records += [Record(r.offset(), r.timestamp(), r.key(), r.value()) for r in polled]
        consumer.close()
        return records

    def _consumer(self, bootstrap: str, **settings: str) -> Any:
        given = {
            "bootstrap.servers": bootstrap,
            "key.deserializer": f"{STRINGS}Deserializer",
            "value.deserializer": f"{STRINGS}Deserializer",
        }
        return self._clients.consumer.KafkaConsumer({**given, **settings})

    def _offset_at(self, consumer: Any, topic: str, ms: int) -> int | None:
        partition = self._partition(topic)
        answer = consumer.offsetsForTimes({partition: ms})[partition]
        return None if answer is None else int(answer.offset())

    def _partition(self, topic: str) -> Any:
        return self._gateway.jvm.org.apache.kafka.common.TopicPartition(topic, 0)

    def _ms(self, ms: int) -> Any:
        return self._gateway.jvm.java.time.Duration.ofMillis(ms)

    def __enter__(self) -> Self:
        """It runs already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the JVM."""
        self._gateway.close()
        stop_servers([self._process])
        assert self._process.stdout is not None
        self._process.stdout.close()

"""Topics with a retention by time, and where their logs begin."""

from __future__ import annotations

import threading
import time

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

# Never reached when all is well.
LIMIT_S = 60
FOREVER = -1


def create_topic(bootstrap: str, topic: str, retention_ms: int = FOREVER) -> None:
    """Makes a topic of one partition."""
    configs = {"retention.ms": str(retention_ms)}
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([NewTopic(topic, 1, config=configs)])[topic].result(LIMIT_S)


def log_bounds(bootstrap: str, topic: str) -> tuple[int, int]:
    """The first offset that the log has, and the one after its last."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    ends = OffsetSpec.earliest(), OffsetSpec.latest()
    start, end = (_offset(client, topic, spec) for spec in ends)
    return start, end


def wait_for_start(bootstrap: str, topic: str, offset: int) -> None:
    """Waits until the log begins at this offset."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    deadline, pause = time.monotonic() + LIMIT_S, threading.Event()
    while (start := _offset(client, topic, OffsetSpec.earliest())) < offset:
        assert time.monotonic() < deadline, f"{topic} begins at {start}, not yet at {offset}"
        pause.wait(0.02)
    assert start == offset


def _offset(client: AdminClient, topic: str, spec: OffsetSpec) -> int:
    (answer,) = client.list_offsets({TopicPartition(topic, 0): spec}).values()
    return int(answer.result(LIMIT_S).offset)

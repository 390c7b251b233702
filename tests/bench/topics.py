"""Topics of a side: created, and asked whether they are led."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.bench.sides import Side

# Kafka takes its time for thousands of partitions.
CREATE_SECONDS = 300
OPEN_SECONDS_MAX = 300.0
ASK_SECONDS = 30
RETRY_S = 0.02


def create_topic(side: Side, topic: str, partitions: int) -> None:
    """Creates a topic, replicated as the side does it, and waits until all of it is led.

    Raises `RuntimeError` if it is not in time.
    """
    new = NewTopic(topic, partitions, side.replication)
    # The client has to live until its answers are there.
    admin = _admin(side)
    outcomes = admin.create_topics(
        [new], operation_timeout=CREATE_SECONDS, request_timeout=CREATE_SECONDS
    )
    for outcome in outcomes.values():
        outcome.result()
    _wait_until_open(admin, {topic: partitions})


def start_and_open(side: Side, topics: Mapping[str, int]) -> float:
    """Starts a side; gives the seconds until every partition tells its end, without the asking.

    `topics` have so many partitions each. Raises `RuntimeError` if they are not open in time.
    """
    began = time.monotonic()
    side.start()
    admin = _admin(side)
    asked_s = _wait_until_open(admin, topics)
    opened_s = time.monotonic() - began
    # What asking itself takes is no part of opening.
    return opened_s - min(asked_s, _ask_all(admin, topics) or asked_s)


def _wait_until_open(admin: AdminClient, topics: Mapping[str, int]) -> float:
    """Asks until every partition tells its end; gives the seconds that it took the last time."""
    clock, until = threading.Event(), time.monotonic() + OPEN_SECONDS_MAX
    while (asked_s := _ask_all(admin, topics)) is None:
        if time.monotonic() > until:
            message = "not every partition was opened"
            raise RuntimeError(message)
        clock.wait(RETRY_S)
    return asked_s


def _admin(side: Side) -> AdminClient:
    return AdminClient({"bootstrap.servers": side.bootstrap, "log_level": 0})


def _ask_all(admin: AdminClient, topics: Mapping[str, int]) -> float | None:
    """Seconds that asking every partition for its end takes, or nothing where one has none yet."""
    began = time.monotonic()
    places = {
        TopicPartition(topic, partition): OffsetSpec.latest()
        for topic, partitions in topics.items()
        for partition in range(partitions)
    }
    try:
        for answer in admin.list_offsets(places, request_timeout=ASK_SECONDS).values():
            answer.result()
    except KafkaException:
        return None
    return time.monotonic() - began

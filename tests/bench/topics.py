"""Topics of a side: created, and asked whether they are led."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic

from tests.bench.probe import NotServedError, told_ends
from tests.bench.sides import Side

# Kafka takes its time for thousands of partitions.
CREATE_SECONDS = 300
OPEN_SECONDS_MAX = 300.0
RETRY_S = 0.02


def create_topic(side: Side, topic: str, partitions: int) -> None:
    """Creates a topic, replicated as the side does it, and waits until all of it is led.

    Raises `RuntimeError` if it is not in time.
    """
    new = NewTopic(topic, partitions, side.replication)
    # The client has to live until its answers are there.
    admin = AdminClient({"bootstrap.servers": side.bootstrap, "log_level": 0})
    outcomes = admin.create_topics(
        [new], operation_timeout=CREATE_SECONDS, request_timeout=CREATE_SECONDS
    )
    for outcome in outcomes.values():
        outcome.result()
    _wait_until_open(side, {topic: partitions})


def start_and_open(side: Side, topics: Mapping[str, int]) -> float:
    """Starts a side; gives the seconds until every partition tells its end, without the asking.

    `topics` have so many partitions each. Raises `RuntimeError` if they are not open in time.
    """
    began = time.monotonic()
    side.start()
    asked_s = _wait_until_open(side, topics)
    opened_s = time.monotonic() - began
    # What asking itself takes is no part of opening.
    return opened_s - min(asked_s, _ask_all(side, topics) or asked_s)


def _wait_until_open(side: Side, topics: Mapping[str, int]) -> float:
    """Asks until every partition tells its end; gives the seconds that it took the last time."""
    clock, until = threading.Event(), time.monotonic() + OPEN_SECONDS_MAX
    while (asked_s := _ask_all(side, topics)) is None:
        if time.monotonic() > until:
            message = "not every partition was opened"
            raise RuntimeError(message)
        clock.wait(RETRY_S)
    return asked_s


def _ask_all(side: Side, topics: Mapping[str, int]) -> float | None:
    """Seconds that asking every partition for its end takes, or nothing where one has none yet."""
    began = time.monotonic()
    told: set[tuple[str, int]] = set()
    for address in side.bootstrap.split(","):
        with contextlib.suppress(OSError, NotServedError):
            told |= told_ends(address, topics)
    asked_s = time.monotonic() - began
    return asked_s if len(told) == sum(topics.values()) else None

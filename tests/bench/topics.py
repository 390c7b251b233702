"""Creates topics on a side, and asks its brokers whether all partitions are led."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic

from tests.bench.probe import NotServedError, partitions_with_end
from tests.bench.sides import Served, Side

# Kafka takes its time for thousands of partitions.
CREATE_SECONDS = 300
OPEN_SECONDS_MAX = 300.0
RETRY_S = 0.02


def create_topic(side: Served, topic: str, partitions: int) -> None:
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
    """Starts a side; returns the seconds until every partition reports its end,
    without those of asking.

    `topics` have so many partitions each. Raises `RuntimeError` if they are not open in time.
    """
    began = time.monotonic()
    side.start()
    asked_s = _wait_until_open(side, topics)
    opened_s = time.monotonic() - began
    # What asking itself takes is no part of opening.
    return opened_s - min(asked_s, _ask_all(side, topics) or asked_s)


def _wait_until_open(side: Served, topics: Mapping[str, int]) -> float:
    """Asks until every partition reports its end; returns the seconds that the last time took."""
    clock, until = threading.Event(), time.monotonic() + OPEN_SECONDS_MAX
    while (asked_s := _ask_all(side, topics)) is None:
        if time.monotonic() > until:
            message = "not every partition was opened"
            raise RuntimeError(message)
        clock.wait(RETRY_S)
    return asked_s


def _ask_all(side: Served, topics: Mapping[str, int]) -> float | None:
    """Asks every partition for its end; returns the seconds that it took, None if one has none."""
    began = time.monotonic()
    open_partitions: set[tuple[str, int]] = set()
    for address in side.bootstrap.split(","):
        with contextlib.suppress(OSError, NotServedError):
            open_partitions |= partitions_with_end(address, topics)
    asked_s = time.monotonic() - began
    return asked_s if len(open_partitions) == sum(topics.values()) else None

"""A client has all partitions that one of three brokers leads led by the others (`disturbed.py`).

A third of the partitions moves, at once, under load. Apache Kafka has all replicas in sync and only
changes who leads: its replicas are put in another order, and the preferred ones elected.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import ElectionType

from tests.bench.clusters import BROKERS, SIDES, ClusterSide, Watcher
from tests.bench.disturbed import TOPIC, Disturbance, run_disturbed
from tests.bench.report import Report

SECONDS = 10


def run(rounds: int | None = None, only: Sequence[str] | None = None, scale: float = 1.0) -> Report:
    """Runs the bench. `scale` has fewer moves."""
    return run_disturbed(MOVE, rounds, only, scale)


@contextmanager
def _moved(side: ClusterSide, watcher: Watcher) -> Iterator[float]:
    before = watcher.leaders()
    nodes = [side.first_node + number for number in range(BROKERS)]
    left = before[0]
    staying = [node for node in nodes if node != left]
    moved = {
        index: staying[index % len(staying)] for index, node in enumerate(before) if node == left
    }
    began = time.monotonic()
    _ask_to_move(side, moved, nodes)
    yield watcher.until_led_by_others(left) - began
    _ask_to_move(side, dict.fromkeys(moved, left), nodes)
    watcher.until_led_by(before)


def _ask_to_move(side: ClusterSide, leaders: Mapping[int, int], nodes: Sequence[int]) -> None:
    """Asks that partitions get these leaders. Raises `RuntimeError` where that is refused."""
    replicas = {
        TopicPartition(TOPIC, index): [leader, *(node for node in nodes if node != leader)]
        for index, leader in leaders.items()
    }
    admin = KafkaAdminClient(bootstrap_servers=side.bootstrap.split(","))
    try:
        refused = {
            partition: error
            for partition, error in admin.alter_partition_reassignments(replicas).items()
            if error is not None
        }
        if refused:
            message = f"a move was refused: {refused}"
            raise RuntimeError(message)
        if side.elects_preferred:
            admin.elect_leaders(ElectionType.PREFERRED, {TOPIC: list(leaders)})
    finally:
        admin.close()


MOVE = Disturbance("move", dict.fromkeys(SIDES, SECONDS), _moved)

"""What a cluster's log holds, from its storage: bytes of record batches, by whom they came.

Stands on `tests.brokers.logscan`, which reads the stored formats by their descriptions and shares
no code with the engine. Every record of the load begins with the name of its producer, so a batch
shows its principal by its own content, and no index is needed.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from tests.brokers.lanes import USAGE, usage_entries
from tests.brokers.logscan import LogScan


@dataclass(frozen=True, order=True)
class Place:
    """Where bytes lie and whose they are. `topic`: 32 hex digits."""

    topic: str
    partition: int
    principal: str


def stored_bytes(scan: LogScan) -> dict[Place, int]:
    """Bytes of every batch of every topic of users, by place. Raises `DamageError`.

    The log must not have been shortened by retention.
    """
    sums: dict[Place, int] = defaultdict(int)
    for topic in scan.topics.values():
        if topic.name.startswith("__"):
            continue
        for partition in range(topic.partitions):
            for batch in scan.batches(topic.name, partition):
                first = next(batch.records())
                who = (first.value or b"").split(b" ", 1)[0].decode()
                sums[Place(topic.id.hex, partition, who)] += batch.size
    return dict(sums)


def counted_egress(scan: LogScan) -> dict[tuple[str, str], int]:
    """What the brokers themselves counted as handed over, by (topic in hex, principal).

    From the usage blocks that are still there: the sum over lanes of each lane's last count.
    """
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for lane in scan.lanes.values():
        last: dict[tuple[str, str], int] = {}
        left = (leftover.usage for leftover in lane.leftovers)
        blocks = (usage_entries(block.index) for block in lane.blocks if block.kind == USAGE)
        for entry in itertools.chain.from_iterable(itertools.chain(left, blocks)):
            topic, principal, total = entry[0], entry[1], entry[-1]
            place = (topic.hex, principal)
            last[place] = max(total, last.get(place, 0))
        for place, total in last.items():
            sums[place] += total
    return dict(sums)


def by_topic_and_principal(stored: Mapping[Place, int]) -> dict[tuple[str, str], int]:
    """Sums over partitions."""
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for place, size in stored.items():
        sums[place.topic, place.principal] += size
    return dict(sums)

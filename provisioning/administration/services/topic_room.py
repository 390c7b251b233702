"""Checks whether topics and partitions fit in a cluster's limits.

Counting them reads all of the cluster's topics, which costs many times what making one topic does.
So a process remembers a count for some seconds, adds what it allowed since, and relies on it while
the sum is at most half of every limit. Nearer to a limit it counts anew, so that it also knows the
topics that other processes and Kafka clients made meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from brokers.metadata import ClusterStore
from console.base.common.clock import now
from console.base.limits.services import check_room, limits_of
from provisioning.models import Cluster

REMEMBERED = timedelta(seconds=10)
# A process remembers the counts of so many clusters at most.
CLUSTERS_MAX = 10_000
LIMITS = ("topics", "partitions")


@dataclass(slots=True)
class _Count:
    """How much of each limit a cluster uses; it may be relied on until the moment `until`."""

    until: datetime
    used: dict[str, int]


_counts: dict[str, _Count] = {}
_lock = threading.Lock()


def require_topic_room(
    *, cluster: Cluster, store: ClusterStore, topics: int, partitions: int
) -> None:
    """Raises `LimitReached` where so many more topics or partitions exceed the cluster's limits."""
    limits = limits_of(LIMITS, organization_id=cluster.organization_id, cluster_id=cluster.pk)
    adding = {"topics": topics, "partitions": partitions}
    if _fits_by_memory(cluster.pk, limits, adding):
        return
    used = _count_topics(store)
    for name in LIMITS:
        check_room(name, limit=limits[name], used=used[name], adding=adding[name])
    with _lock:
        if len(_counts) >= CLUSTERS_MAX:
            _counts.clear()
        after = {name: used[name] + adding[name] for name in LIMITS}
        _counts[cluster.pk] = _Count(now() + REMEMBERED, after)


def forget_counts() -> None:
    """Forgets all counts. For tests, which share one process."""
    with _lock:
        _counts.clear()


def _fits_by_memory(cluster_id: str, limits: Mapping[str, int], adding: Mapping[str, int]) -> bool:
    """Whether by the remembered count at most half of every limit is used with `adding`.

    If so, `adding` is counted in. False where nothing is remembered.
    """
    with _lock:
        count = _counts.get(cluster_id)
        if count is None or count.until <= now():
            return False
        after = {name: count.used[name] + adding[name] for name in LIMITS}
        if any(2 * after[name] > limits[name] for name in LIMITS):
            return False
        count.used = after
        return True


def _count_topics(store: ClusterStore) -> dict[str, int]:
    partitions = [topic.partitions for topic in store.topics() if not topic.internal]
    return {"topics": len(partitions), "partitions": sum(partitions)}

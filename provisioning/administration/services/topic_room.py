"""Room for topics and their partitions within a cluster's limits.

Counting them reads all of the cluster's topics, which costs many times what making one does. So a
process remembers what it counted, for some seconds and together with what it let be made since,
and believes it while all of that is less than half of the limit. Nearer to it every topic is
counted anew: what other processes or clients of Kafka make meanwhile is then known.
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
# Clusters that a process remembers at most.
CLUSTERS_MAX = 10_000
LIMITS = ("topics", "partitions")


@dataclass(slots=True)
class _Count:
    """What there is of each limit, at least until a moment."""

    until: datetime
    used: dict[str, int]


_counts: dict[str, _Count] = {}
_lock = threading.Lock()


def require_topic_room(
    *, cluster: Cluster, store: ClusterStore, topics: int, partitions: int
) -> None:
    """Raises `LimitReached` where the cluster would have more than it may."""
    limits = limits_of(LIMITS, organization_id=cluster.organization_id, cluster_id=cluster.pk)
    adding = {"topics": topics, "partitions": partitions}
    if _far_off(cluster.pk, limits, adding):
        return
    used = _counted(store)
    for name in LIMITS:
        check_room(name, limit=limits[name], used=used[name], adding=adding[name])
    with _lock:
        if len(_counts) >= CLUSTERS_MAX:
            _counts.clear()
        after = {name: used[name] + adding[name] for name in LIMITS}
        _counts[cluster.pk] = _Count(now() + REMEMBERED, after)


def forget() -> None:
    """Counts anew. For tests, which share one process."""
    with _lock:
        _counts.clear()


def _far_off(cluster_id: str, limits: Mapping[str, int], adding: Mapping[str, int]) -> bool:
    """Whether what is remembered leaves half of every limit; if so, what comes is remembered."""
    with _lock:
        known = _counts.get(cluster_id)
        if known is None or known.until <= now():
            return False
        after = {name: known.used[name] + adding[name] for name in LIMITS}
        if any(2 * after[name] > limits[name] for name in LIMITS):
            return False
        known.used = after
        return True


def _counted(store: ClusterStore) -> dict[str, int]:
    there = [topic.partitions for topic in store.topics() if not topic.internal]
    return {"topics": len(there), "partitions": sum(there)}

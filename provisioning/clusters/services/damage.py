"""Damaged batches that brokers know of, as the keeper reported them.

A report may be some seconds old. Where the cell's metadata cannot be read, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from provisioning.clusters.services.deletion_guard import cell_health
from provisioning.models import Cluster


def reported_by_cluster() -> Mapping[str, list[tuple[str, int, int]]]:
    """Topic, partition and first offset of the lowest damaged batches, by the cluster's id."""
    health = cell_health()
    by_cluster: dict[str, list[tuple[str, int, int]]] = {}
    for cluster_id, topic, partition, offset in () if health is None else health.damaged:
        by_cluster.setdefault(cluster_id, []).append((topic, partition, offset))
    return by_cluster


def reported_damage(*, cluster: Cluster, topic: str) -> dict[int, int]:
    """The first offset of the lowest damaged batch of each partition of a topic that has one."""
    return {
        partition: offset
        for name, partition, offset in reported_by_cluster().get(cluster.pk, ())
        if name == topic
    }

"""Damaged batches that brokers know of, as the keeper reported them.

A report may be some seconds old, or as old as the cluster's sleep is long. It is of a topic by its
id: another topic may have the name by now. Where the cell's metadata cannot be read, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, repeat
from typing import NamedTuple

from provisioning.clusters.services.deletion_guard import cell_health
from provisioning.models import Cluster


class ReportedDamage(NamedTuple):
    """The lowest damaged batch of a partition.

    `topic_id` is as Kafka writes it; empty where the report does not have it, because a keeper or a
    broker of an earlier release made it.
    """

    topic: str
    partition: int
    first_offset: int
    topic_id: str

    def is_of(self, name: str, topic_id: str) -> bool:
        """Whether it is of the topic that has this name and this id."""
        return self.topic == name and self.topic_id in {"", topic_id}


def reported_by_cluster() -> Mapping[str, list[ReportedDamage]]:
    """The damaged batches by the cluster's id."""
    health = cell_health()
    by_cluster: dict[str, list[ReportedDamage]] = {}
    if health is None:
        return by_cluster
    topic_ids = chain(health.damaged_topics, repeat(""))
    for batch, topic_id in zip(health.damaged, topic_ids, strict=False):
        cluster_id, topic, partition, offset = batch
        damage = ReportedDamage(topic, partition, offset, topic_id)
        by_cluster.setdefault(cluster_id, []).append(damage)
    return by_cluster


def reported_damage(*, cluster: Cluster, topic: str, topic_id: str) -> dict[int, int]:
    """The first offset of the lowest damaged batch of each partition of a topic that has one."""
    return {
        damage.partition: damage.first_offset
        for damage in reported_by_cluster().get(cluster.pk, ())
        if damage.is_of(topic, topic_id)
    }

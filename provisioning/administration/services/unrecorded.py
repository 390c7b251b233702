"""Finds changes that a request made in a cell before it died, so that the audit log lacks them.

A change is made in the metadata store first, then its entry in PostgreSQL. A request that dies
between the two leaves a change that nobody has an answer or an entry for. Whoever sends the request
again wants just that change, so it counts as made by the repeated request, which writes the entry.
Changes of other requests are in the audit log, those of Kafka clients in a list of the cell.

The caller holds the topic (`hold_topic`), so a request that is about to write its entry has ended.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from django.db.models import QuerySet

from brokers.metadata import ClusterStore
from brokers.metadata_records import Topic
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from provisioning.models import Cluster

# An older change is not taken for that of a repeated request: nobody repeats one for so long.
REPEATED = timedelta(hours=1)
# How far the cell's clock and the control plane's may differ.
CLOCKS_APART = timedelta(minutes=1)
MADE = ("topic.create", "topic.attach", "topic.undelete")
GROWN = (*MADE, "topic.add_partitions", "topic.create_partitions")


def is_unrecorded(
    *, cluster: Cluster, store: ClusterStore, name: str, actions: Collection[str], at_ms: int
) -> bool:
    """Whether a topic changed at the moment `at_ms` (Unix ms) and no log has one of `actions` then.

    Raises `MetadataError`.
    """
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    if moment < now() - REPEATED:
        return False
    entries = _entries(cluster, name).filter(
        action__in=actions, created_at__gte=moment - CLOCKS_APART
    )
    return not entries.exists() and not _is_clients_change(store, name, actions)


def has_grown_unrecorded(
    *, cluster: Cluster, store: ClusterStore, topic: Topic, count: int
) -> bool:
    """Whether a topic has `count` partitions, and by the audit log it has fewer."""
    if topic.partitions != count or _is_clients_change(store, topic.name, GROWN):
        return False
    entry = _entries(cluster, topic.name).filter(action__in=GROWN).order_by("-created_at").first()
    recorded = None if entry is None else entry.detail.get("partitions")
    if isinstance(recorded, dict):
        recorded = recorded["to"]
    return isinstance(recorded, int) and recorded < count


def is_back_unrecorded(*, cluster: Cluster, topic: Topic) -> bool:
    """Whether a topic exists that by the audit log was deleted last."""
    entries = _entries(cluster, topic.name).filter(action__in=(*MADE, "topic.delete"))
    entry = entries.order_by("-created_at").first()
    if entry is None or entry.created_at < now() - REPEATED:
        return False
    return entry.action == "topic.delete"


def _entries(cluster: Cluster, name: str) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(
        organization_id=cluster.organization_id, target_id=f"{cluster.pk}/{name}"
    )


def _is_clients_change(store: ClusterStore, name: str, actions: Collection[str]) -> bool:
    """Whether a client changed the topic over Kafka and the audit log does not have that yet."""
    return any(change.target == name and change.action in actions for change in store.changes())

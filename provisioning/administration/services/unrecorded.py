"""What a request did in a cell before it died: there, and not in the audit log.

The change is the metadata store's, the entry PostgreSQL's, in this order: a request that dies
between the two leaves a change that nobody was told of. Whoever sends it again wants just that, so
it is taken for the one that this request makes. What anybody else made is in the log, what Kafka's
clients made in the cell's own list of changes.

The caller holds the topic (`hold_topic`): another request that is about to write its entry is
waited for.
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

# Nobody repeats a request for longer.
REPEATED = timedelta(hours=1)
# The cell's clock and ours.
CLOCKS_APART = timedelta(minutes=1)
MADE = ("topic.create", "topic.attach", "topic.undelete")
GROWN = (*MADE, "topic.add_partitions", "topic.create_partitions")


def is_unrecorded(
    *, cluster: Cluster, store: ClusterStore, name: str, actions: Collection[str], at_ms: int
) -> bool:
    """Whether a change of a topic at a moment (Unix ms) is in no log. Raises `MetadataError`."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    if moment < now() - REPEATED:
        return False
    entries = _entries(cluster, name).filter(
        action__in=actions, created_at__gte=moment - CLOCKS_APART
    )
    return not entries.exists() and not _told_by_clients(store, name, actions)


def has_grown_unrecorded(
    *, cluster: Cluster, store: ClusterStore, topic: Topic, count: int
) -> bool:
    """Whether a topic has so many partitions, and the log says it has fewer."""
    if topic.partitions != count or _told_by_clients(store, topic.name, GROWN):
        return False
    entry = _entries(cluster, topic.name).filter(action__in=GROWN).order_by("-created_at").first()
    recorded = None if entry is None else entry.detail.get("partitions")
    return isinstance(recorded, int) and recorded < count


def is_back_unrecorded(*, cluster: Cluster, topic: Topic) -> bool:
    """Whether a topic that is there was deleted last, as far as the log says."""
    entries = _entries(cluster, topic.name).filter(action__in=(*MADE, "topic.delete"))
    entry = entries.order_by("-created_at").first()
    if entry is None or entry.created_at < now() - REPEATED:
        return False
    return entry.action == "topic.delete"


def _entries(cluster: Cluster, name: str) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(
        organization_id=cluster.organization_id, target_id=f"{cluster.pk}/{name}"
    )


def _told_by_clients(store: ClusterStore, name: str, actions: Collection[str]) -> bool:
    """Among the last changes over Kafka's protocol, which the log does not have yet."""
    return any(change.target == name and change.action in actions for change in store.changes())

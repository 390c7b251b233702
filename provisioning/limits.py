"""How much of its limits an organisation, or one of its clusters, uses.

In the organisation's tenancy scope. Raises `Unavailable` where the cell does not answer.
"""

from __future__ import annotations

from console.base.limits.signals import limit_granted
from console.base.limits.usage import register_clusters, register_usage
from provisioning.cells import cell_store, cluster_store, metadata_errors
from provisioning.clusters.services.clusters import enqueue_reconcile
from provisioning.models import Cluster, Credential

# What the cell enforces: a cluster's spec tells it.
TOLD_TO_CELLS = {"connections", "wakes_per_minute"}


def register() -> None:
    """Tells `console.base.limits` what this application knows."""
    register_clusters(has_cluster)
    register_usage("clusters", clusters_used)
    register_usage("brokers", brokers_used)
    register_usage("credentials", credentials_used)
    register_usage("acls", acls_used)
    register_usage("topics", topics_used)
    register_usage("partitions", partitions_used)
    register_usage("quotas", quotas_used)
    register_usage("connections", connections_used)
    limit_granted.connect(tell_cells, dispatch_uid="provisioning")


def has_cluster(organization_id: str, cluster_id: str) -> bool:
    """Whether it is the organisation's, and not purged."""
    clusters = Cluster.objects.for_organization(organization_id).not_purged()
    return clusters.filter(pk=cluster_id).exists()


def clusters_used(organization_id: str, cluster_id: str) -> int:
    """Clusters that are not deleted."""
    del cluster_id
    return Cluster.objects.for_organization(organization_id).active().count()


def brokers_used(organization_id: str, cluster_id: str) -> int:
    """Brokers that the cluster may have when it is awake."""
    return Cluster.objects.for_organization(organization_id).get(pk=cluster_id).scale


def credentials_used(organization_id: str, cluster_id: str) -> int:
    """Credentials that have their name, those of an overlap not counted."""
    found = Credential.objects.for_organization(organization_id).named()
    return found.filter(cluster_id=cluster_id).count()


def acls_used(organization_id: str, cluster_id: str) -> int:
    """Entries of the access control list."""
    del organization_id
    with metadata_errors():
        return len(cluster_store(cluster_id).list_acls())


def topics_used(organization_id: str, cluster_id: str) -> int:
    """Topics, without Kafka's own."""
    del organization_id
    return len(_partitions(cluster_id))


def partitions_used(organization_id: str, cluster_id: str) -> int:
    """Their partitions."""
    del organization_id
    return sum(_partitions(cluster_id))


def quotas_used(organization_id: str, cluster_id: str) -> int:
    """Entities that have quotas."""
    del organization_id
    with metadata_errors():
        return len(cluster_store(cluster_id).quotas())


def connections_used(organization_id: str, cluster_id: str) -> int:
    """Clients' connections, as the keeper last counted them."""
    del organization_id
    with metadata_errors():
        status = cell_store().status(cluster_id)
    return 0 if status is None else status.connections


def tell_cells(*, organization_id: str, cluster_id: str, name: str, **_: object) -> None:
    """Has the specs of the clusters written anew: they carry some of the limits."""
    if name not in TOLD_TO_CELLS:
        return
    clusters = Cluster.objects.for_organization(organization_id).active()
    for cluster in clusters.filter(pk=cluster_id) if cluster_id else clusters:
        enqueue_reconcile(cluster=cluster)


def _partitions(cluster_id: str) -> list[int]:
    with metadata_errors():
        topics = cluster_store(cluster_id).topics()
    return [topic.partitions for topic in topics if not topic.internal]

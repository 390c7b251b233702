"""How much of its limits an organization, or one of its clusters, uses.

The functions read in the organization's tenancy scope, and raise `Unavailable` where the cell does
not answer.
"""

from __future__ import annotations

from console.base.common.concurrency import concurrency
from console.base.limits.signals import limit_granted
from console.base.limits.usage import register_clusters, register_usage
from provisioning.administration.services.credentials import count_users, rotated_users
from provisioning.cell.samples import GROUPS
from provisioning.cells import cell_store, cluster_store, metadata_errors
from provisioning.clusters.services import limits
from provisioning.clusters.services.operations import enqueue_reconcile
from provisioning.clusters.services.samples import newest_sample
from provisioning.models import Cluster

# The limits that a cell enforces, because they are part of a cluster's specification.
ENFORCED_BY_CELLS = {"connections", "wakes_per_minute", *limits.NAMES}


def register_limits() -> None:
    """Registers with `console.base.limits` how much of each limit is used; called once."""
    register_clusters(has_cluster)
    register_usage("clusters", clusters_used)
    register_usage("deleted_clusters", deleted_clusters_used)
    register_usage("brokers", brokers_used)
    register_usage("credentials", credentials_used)
    register_usage("acls", acls_used)
    register_usage("topics", topics_used)
    register_usage("partitions", partitions_used)
    register_usage("quotas", quotas_used)
    register_usage("groups", groups_used)
    register_usage("connections", connections_used)
    register_usage("live_tails", live_tails_used)
    limit_granted.connect(send_limit_to_cells, dispatch_uid="provisioning")


def has_cluster(organization_id: str, cluster_id: str) -> bool:
    """Whether the organization has this cluster and it is not purged."""
    clusters = Cluster.objects.for_organization(organization_id).not_purged()
    return clusters.filter(pk=cluster_id).exists()


def clusters_used(organization_id: str, cluster_id: str) -> int:
    """The number of the organization's clusters that are not deleted."""
    return Cluster.objects.for_organization(organization_id).active().count()


def deleted_clusters_used(organization_id: str, cluster_id: str) -> int:
    """The number of the organization's clusters that are deleted and not purged."""
    return Cluster.objects.for_organization(organization_id).deleted().count()


def brokers_used(organization_id: str, cluster_id: str) -> int:
    """The number of brokers that the cluster has when it is awake."""
    return Cluster.objects.for_organization(organization_id).get(pk=cluster_id).scale


def credentials_used(organization_id: str, cluster_id: str) -> int:
    """The number of users, without those that were rotated and still authenticate."""
    cluster = Cluster.objects.for_organization(organization_id).get(pk=cluster_id)
    with metadata_errors():
        return count_users(store=cluster_store(cluster_id), rotated=rotated_users(cluster=cluster))


def acls_used(organization_id: str, cluster_id: str) -> int:
    """The number of entries of the access control list."""
    with metadata_errors():
        return len(cluster_store(cluster_id).list_acls())


def topics_used(organization_id: str, cluster_id: str) -> int:
    """The number of topics, without Kafka's internal ones."""
    return len(_partitions(cluster_id))


def partitions_used(organization_id: str, cluster_id: str) -> int:
    """The number of partitions of all topics, without Kafka's internal ones."""
    return sum(_partitions(cluster_id))


def quotas_used(organization_id: str, cluster_id: str) -> int:
    """The number of entities that have quotas."""
    with metadata_errors():
        return len(cluster_store(cluster_id).quotas())


def groups_used(organization_id: str, cluster_id: str) -> int:
    """The number of groups, as the keeper last saw them."""
    sample = newest_sample(organization_id=organization_id, cluster_id=cluster_id)
    return 0 if sample is None else len(sample.content.get(GROUPS, []))


def connections_used(organization_id: str, cluster_id: str) -> int:
    """The number of clients' connections, as the keeper last counted them."""
    with metadata_errors():
        status = cell_store().status(cluster_id)
    return 0 if status is None else status.connections


def live_tails_used(organization_id: str, cluster_id: str) -> int:
    """The number of live tails that are open. `cluster_id` is ignored."""
    return concurrency().used("live_tails", organization_id)


def send_limit_to_cells(*, organization_id: str, cluster_id: str, name: str, **_: object) -> None:
    """Has workers write the specifications of clusters anew that a granted limit is part of.

    It receives the signal `limit_granted`. Without a cluster id the limit is the organization's.
    """
    if name not in ENFORCED_BY_CELLS:
        return
    clusters = Cluster.objects.for_organization(organization_id).active()
    for cluster in clusters.filter(pk=cluster_id) if cluster_id else clusters:
        enqueue_reconcile(cluster=cluster)


def _partitions(cluster_id: str) -> list[int]:
    """The number of partitions of each topic that is not internal."""
    with metadata_errors():
        topics = cluster_store(cluster_id).topics()
    return [topic.partitions for topic in topics if not topic.internal]

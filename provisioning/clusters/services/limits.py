"""The limits of a cluster that its metadata store and its brokers hold additions to."""

from __future__ import annotations

from dataclasses import fields

from brokers.metadata_records import ClusterLimits
from console.base.limits.services import limits_of
from provisioning.models import Cluster

# They have the names under which they are published.
NAMES = tuple(field.name for field in fields(ClusterLimits))


def limits_of_cluster(*, cluster: Cluster) -> ClusterLimits:
    """The values that apply to a cluster now, with one query."""
    values = limits_of(NAMES, organization_id=cluster.organization_id, cluster_id=cluster.pk)
    return ClusterLimits(**values)

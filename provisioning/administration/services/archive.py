"""The part of an organization's archive that comes from its cells: topics and ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from console.base.common.errors import NotFound
from console.base.common.exports import Row
from provisioning.administration.services.acls import list_acls
from provisioning.administration.services.topics import list_topics
from provisioning.models import Cluster


def archived_topics(organization_id: str) -> Iterator[Row]:
    """Yields the topics of the organization's clusters, with the configs that they set."""
    for cluster in _clusters(organization_id):
        try:
            topics = list_topics(cluster=cluster, internal=False)
        except NotFound:
            continue  # the cell does not know the cluster yet, or no longer
        for shown in topics:
            yield {
                "cluster_id": cluster.pk,
                "id": shown.topic.id,
                "name": shown.topic.name,
                "partitions": shown.topic.partitions,
                "configs": dict(shown.topic.configs),
                "created_at": shown.created_at,
            }


def archived_acls(organization_id: str) -> Iterator[Row]:
    """Yields the entries of the access control lists of the organization's clusters."""
    for cluster in _clusters(organization_id):
        try:
            acls = list_acls(cluster=cluster, matching={})
        except NotFound:
            continue
        for acl in acls:
            yield {"cluster_id": cluster.pk, **asdict(acl)}


def _clusters(organization_id: str) -> list[Cluster]:
    return list(Cluster.objects.for_organization(organization_id).not_purged().order_by("id"))

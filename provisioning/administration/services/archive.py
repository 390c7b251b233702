"""What an organisation's archive holds of its clusters' metadata, which is not in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from console.base.common.errors import NotFound
from console.base.common.exports import Row
from provisioning.administration.services.acls import list_acls
from provisioning.administration.services.topics import list_topics
from provisioning.models import Cluster


def archived_topics(organization_id: str) -> Iterator[Row]:
    """Topics of its clusters, with what was configured."""
    for cluster in _clusters(organization_id):
        try:
            topics = list_topics(cluster=cluster, internal=False, full=False)
        except NotFound:
            continue  # its cell has nothing of it yet, or nothing any more
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
    """Entries of its clusters' access control lists."""
    for cluster in _clusters(organization_id):
        try:
            acls = list_acls(cluster=cluster, wanted={})
        except NotFound:
            continue
        for acl in acls:
            yield {"cluster_id": cluster.pk, **asdict(acl)}


def _clusters(organization_id: str) -> list[Cluster]:
    return list(Cluster.objects.for_organization(organization_id).not_purged().order_by("id"))

"""Which clusters an actor may see, for packages that know clusters by id only.

Metering and billing do not import the package that has the rows of clusters. That package registers
a search in its `AppConfig.ready`; whoever shows usage or costs of clusters calls
`readable_clusters` first.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from console.base.common.actor import Actor, Permission


class ClusterSearch(Protocol):
    """Finds the clusters of some projects of an organization, deleted ones too."""

    def __call__(self, *, organization_id: str, project_ids: Collection[str]) -> list[str]:
        """Returns the sorted ids of the clusters."""


_searches: dict[str, ClusterSearch] = {}


def register_clusters(name: str, search: ClusterSearch) -> None:
    """Registers a search, in place of an earlier one of that name."""
    _searches[name] = search


def readable_clusters(actor: Actor) -> list[str] | None:
    """Returns sorted ids of the clusters whose usage and costs an actor may see; None for all."""
    projects = actor.projects_with(Permission.READ)
    if projects is None:
        return None
    results = [
        search(organization_id=actor.organization_id, project_ids=projects)
        for search in _searches.values()
    ]
    return sorted(cluster_id for ids in results for cluster_id in ids)

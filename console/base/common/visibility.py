"""Which clusters an actor may see, for those who know clusters by their ids only.

Usage and its readers do not know who keeps clusters. That one registers its search in its
`AppConfig.ready`; whoever shows something of clusters asks here first.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from console.base.common.actor import Actor, Permission


class ClusterSearch(Protocol):
    """Finds the clusters of some projects of an organisation, those that are gone too."""

    def __call__(self, *, organization_id: str, project_ids: Collection[str]) -> list[str]:
        """Their ids, in order."""


_searches: dict[str, ClusterSearch] = {}


def register_clusters(name: str, search: ClusterSearch) -> None:
    """Adds a search; another one under the same name is replaced."""
    _searches[name] = search


def readable_clusters(actor: Actor) -> list[str] | None:
    """Ids of the clusters whose usage and costs an actor may see; None: of all."""
    projects = actor.projects_with(Permission.READ)
    if projects is None:
        return None
    found = [
        search(organization_id=actor.organization_id, project_ids=projects)
        for search in _searches.values()
    ]
    return sorted(each for ids in found for each in ids)

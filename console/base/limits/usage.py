"""How much of a limit is used.

An application registers in its `AppConfig.ready` a function for each limit whose use it knows.
"""

from __future__ import annotations

from collections.abc import Callable

from console.base.common.errors import AppError

# Takes an organization's id and, for a limit of clusters, a cluster's id; returns how much is used,
# or None if that is not known. Runs in the organization's tenancy scope; may raise an `AppError`.
Reader = Callable[[str, str], int | None]

_readers: dict[str, Reader] = {}
# Takes an organization's and a cluster's id; returns whether the organization has the cluster.
_has_cluster: Callable[[str, str], bool] | None = None


def register_usage(name: str, reader: Reader) -> None:
    """Registers the function that reads a limit's use, in place of an earlier one."""
    _readers[name] = reader


def register_clusters(has_cluster: Callable[[str, str], bool]) -> None:
    """Sets the function that says whether an organization has a cluster."""
    global _has_cluster  # noqa: PLW0603 (one a process, set when it starts)
    _has_cluster = has_cluster


def has_cluster(organization_id: str, cluster_id: str) -> bool:
    """Returns whether the organization has the cluster. Runs in its tenancy scope."""
    return _has_cluster is not None and _has_cluster(organization_id, cluster_id)


def read_usage(name: str, organization_id: str, cluster_id: str) -> int | None:
    """Returns how much of a limit is used; None if unknown, or the part that knows it fails."""
    reader = _readers.get(name)
    if reader is None:
        return None
    try:
        return reader(organization_id, cluster_id)
    except AppError:
        return None

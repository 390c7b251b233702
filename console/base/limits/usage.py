"""How much of a limit is used. An application registers what it knows in its `AppConfig.ready`."""

from __future__ import annotations

from collections.abc import Callable

from console.base.common.errors import AppError

# An organisation and, of limits of clusters, the id of one of its clusters → how much is used.
# None: nobody knows. In the organisation's tenancy scope; may raise an `AppError`.
Reader = Callable[[str, str], int | None]

_readers: dict[str, Reader] = {}
# Whether an organisation has a cluster.
_has_cluster: Callable[[str, str], bool] | None = None


def register_usage(name: str, reader: Reader) -> None:
    """Adds how a limit's use is read; another one under the same name is replaced."""
    _readers[name] = reader


def register_clusters(has_cluster: Callable[[str, str], bool]) -> None:
    """Sets how it is found out whether an organisation has a cluster of an id."""
    global _has_cluster  # noqa: PLW0603 (one a process, set when it starts)
    _has_cluster = has_cluster


def has_cluster(organization_id: str, cluster_id: str) -> bool:
    """Whether the organisation has such a cluster. In its tenancy scope."""
    return _has_cluster is not None and _has_cluster(organization_id, cluster_id)


def used(name: str, organization_id: str, cluster_id: str) -> int | None:
    """How much is used; None where it is not known, for one because the cell does not answer."""
    reader = _readers.get(name)
    if reader is None:
        return None
    try:
        return reader(organization_id, cluster_id)
    except AppError:
        return None

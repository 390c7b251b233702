"""What the control plane and the keeper tell each other besides specs and statuses, as samples of a
cell's metadata store: what is in a sample is theirs to say.

- `sample/<cluster id>` of a purged cluster: a `Removal`. Only with it does anything of a cluster go
  for good; that a cluster has no spec says nothing: the metadata may come from a backup.
- `sample/keeper`: the `CellHealth` that the keeper sees. No cluster has this id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from brokers.metadata import CellStore
from brokers.metadata_records import Sample

KEEPER = "keeper"
REMOVAL = "removal"
HEALTH = "health"

Note = TypeVar("Note", bound="Removal | CellHealth")


@dataclass(frozen=True)
class Removal:
    """The cluster's records are gone, and what its driver keeps of it may go. Times: Unix ms.

    `break_glass`: the audit entry by which it may go although deletions are held, until
    `break_glass_until_ms`; empty: there is none.
    """

    purged_at_ms: int
    break_glass: str = ""
    break_glass_until_ms: int = 0

    def broken(self, now_ms: int) -> str:
        """The audit entry that lets it go at this moment; empty: none does."""
        return self.break_glass if now_ms < self.break_glass_until_ms else ""


@dataclass(frozen=True)
class CellHealth:
    """How the brokers of a cell are. Times: Unix ms.

    `wanted`: brokers that should run, `unhealthy`: those of them that do not serve. `held`: nothing
    may be deleted; `reason` says why, for people. `platform`: why what runs brokers cannot be
    asked; empty: it can. `machines`: those that are lost, by name. `orphans`: clusters that nobody
    wants and nobody purged. `etcd_file_bytes`: the database file of etcd's fullest member, of which
    `etcd_in_use_bytes` are in use; 0: not known, as of a cell in SQLite. `etcd_quota_bytes`: how
    large the file may become; 0: there is no quota.
    """

    told_at_ms: int
    wanted: int = 0
    unhealthy: int = 0
    held: bool = False
    reason: str = ""
    platform: str = ""
    machines: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    etcd_file_bytes: int = 0
    etcd_in_use_bytes: int = 0
    etcd_quota_bytes: int = 0


def put_removal(store: CellStore, cluster_id: str, removal: Removal) -> None:
    """Tells the keeper that a cluster was purged. Raises `MetadataError`."""
    content = {REMOVAL: asdict(removal)}
    store.put_sample(cluster_id, Sample(taken_at_ms=removal.purged_at_ms, content=content))


def removal_of(store: CellStore, cluster_id: str) -> Removal | None:
    """What the control plane tells of a purged cluster. Raises `MetadataError`."""
    sample = store.sample(cluster_id)
    return None if sample is None else _read(Removal, sample.content.get(REMOVAL))


def put_health(store: CellStore, health: CellHealth) -> None:
    """Tells the control plane how brokers are. Raises `MetadataError`."""
    content = {HEALTH: asdict(health)}
    store.put_sample(KEEPER, Sample(taken_at_ms=health.told_at_ms, content=content))


def health_of(store: CellStore) -> CellHealth | None:
    """What the keeper told last; None where it never did. Raises `MetadataError`."""
    sample = store.sample(KEEPER)
    return None if sample is None else _read(CellHealth, sample.content.get(HEALTH))


def _read(kind: type[Note], content: Any) -> Note | None:  # noqa: ANN401 (JSON)
    """A note, without what a newer release added to it; None where it is none."""
    if not isinstance(content, Mapping):
        return None
    given: dict[str, Any] = {}
    for field in fields(kind):
        if field.name in content:
            value = content[field.name]
            given[field.name] = tuple(value) if isinstance(value, list) else value
    try:
        return kind(**given)
    except TypeError:
        return None

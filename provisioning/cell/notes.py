"""Records that the control plane and the keeper write for each other besides specs and statuses.

They are stored as samples of the cell's metadata store, which does not interpret their content.

- `sample/<cluster id>` of a purged cluster holds a `Removal`, which the control plane writes. The
  keeper removes nothing of a cluster for good without it. A missing spec is no reason to remove
  anything, because the metadata store may have been restored from a backup.
- `sample/keeper` holds the `CellHealth`, which the keeper writes. No cluster has this id.
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
    """Says that a cluster's records are purged, so the driver may remove its objects and files.

    `break_glass` is the id of the audit entry that permits the removal even while deletions are
    held; it is empty where there is none. It holds until `break_glass_until_ms`. Times are Unix
    milliseconds.
    """

    purged_at_ms: int
    break_glass: str = ""
    break_glass_until_ms: int = 0

    def permit_at(self, now_ms: int) -> str:
        """The audit entry that permits the removal at `now_ms`; empty where none does."""
        return self.break_glass if now_ms < self.break_glass_until_ms else ""


@dataclass(frozen=True)
class CellHealth:
    """How the brokers of a cell are, as the keeper reported it at `told_at_ms` (Unix ms).

    The field names are stored, so they stay as they are.

    - `wanted`: how many brokers should run; `unhealthy`: how many of those do not serve.
    - `held`: whether deletions are held; `reason` explains it to people.
    - `platform`: why the platform that runs brokers cannot be asked; empty where it can.
    - `machines`: the names of lost machines.
    - `orphans`: clusters that have neither a spec nor a `Removal`.
    - `etcd_file_bytes`: size of the database file of etcd's fullest member, of which
      `etcd_in_use_bytes` are in use; both are 0 where that is not known, as of a cell in SQLite.
    - `etcd_quota_bytes`: how large that file may become; 0 where there is no quota.
    - `damaged`: the lowest damaged batches that brokers knew of last: cluster, topic, partition,
      offset.
    - `damage_unknown`: clusters that run and of which `damaged` may lack some.
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
    damaged: tuple[tuple[str, str, int, int], ...] = ()
    damage_unknown: tuple[str, ...] = ()


def put_removal(store: CellStore, cluster_id: str, removal: Removal) -> None:
    """Writes for the keeper that a cluster was purged. Raises `MetadataError`."""
    content = {REMOVAL: asdict(removal)}
    store.put_sample(cluster_id, Sample(taken_at_ms=removal.purged_at_ms, content=content))


def removal_of(store: CellStore, cluster_id: str) -> Removal | None:
    """The `Removal` of a purged cluster; None where there is none. Raises `MetadataError`."""
    sample = store.sample(cluster_id)
    return None if sample is None else _read_note(Removal, sample.content.get(REMOVAL))


def put_health(store: CellStore, health: CellHealth) -> None:
    """Writes for the control plane how the brokers are. Raises `MetadataError`."""
    content = {HEALTH: asdict(health)}
    store.put_sample(KEEPER, Sample(taken_at_ms=health.told_at_ms, content=content))


def health_of(store: CellStore) -> CellHealth | None:
    """The last health that the keeper wrote; None where it never did. Raises `MetadataError`."""
    sample = store.sample(KEEPER)
    return None if sample is None else _read_note(CellHealth, sample.content.get(HEALTH))


def _read_note(kind: type[Note], content: Any) -> Note | None:  # noqa: ANN401 (JSON)
    """A note from its JSON, without fields that a newer release added; None where it is none."""
    if not isinstance(content, Mapping):
        return None
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name in content:
            value = content[field.name]
            values[field.name] = tuple(value) if isinstance(value, list) else value
    try:
        return kind(**values)
    except TypeError:
        return None

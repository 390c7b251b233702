"""Records that the control plane and the keeper write for each other besides specs and statuses.

They are stored in the cell's metadata store, which does not interpret their content.

- `removal/<cluster id>` of a purged cluster holds a `Removal`, which the control plane writes. The
  keeper removes nothing of a cluster for good without it. A missing spec is no reason to remove
  anything, because the metadata store may have been restored from a backup.
- `health/keeper` holds the `CellHealth`, which the keeper writes.

An earlier release wrote both under `sample/`, beside samples of clusters. A keeper moves them
(`move_earlier_notes`) when it starts and once an hour, because the control plane may be of that
release for a while yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from brokers.metadata import CellStore
from brokers.metadata_records import Sample

KEEPER = "keeper"
# Where the content of an earlier release's record has the `Removal`.
EARLIER_REMOVAL = "removal"

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
    - `damaged_topics`: of each of `damaged`, the id of its topic as Kafka writes it; "" where that
      is not known, and shorter than `damaged` where an earlier release wrote it.
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
    damaged_topics: tuple[str, ...] = ()


def put_removal(store: CellStore, cluster_id: str, removal: Removal) -> None:
    """Writes for the keeper that a cluster was purged. Raises `MetadataError`."""
    store.put_removal(cluster_id, asdict(removal))


def removal_of(store: CellStore, cluster_id: str) -> Removal | None:
    """The `Removal` of a purged cluster; None where there is none. Raises `MetadataError`."""
    note = store.removal(cluster_id)
    return None if note is None else _read_note(Removal, note.content)


def put_health(store: CellStore, health: CellHealth) -> None:
    """Writes for the control plane how the brokers are. Raises `MetadataError`."""
    store.put_health(KEEPER, asdict(health))


def health_of(store: CellStore) -> CellHealth | None:
    """The last health that the keeper wrote; None where it never did. Raises `MetadataError`."""
    note = store.health(KEEPER)
    return None if note is None else _read_note(CellHealth, note.content)


def move_earlier_notes(store: CellStore) -> dict[str, Sample]:
    """Moves the notes that an earlier release left, and returns its samples of clusters.

    A `Removal` that is stored already stays as it is. The health is written anew every few seconds,
    so the old one is only removed. Raises `MetadataError`.
    """
    samples = {}
    for cluster_id, sample in store.samples().items():
        removal = sample.content.get(EARLIER_REMOVAL)
        if isinstance(removal, Mapping):
            store.add_removal(cluster_id, removal)
            store.remove_sample(cluster_id)
        elif cluster_id == KEEPER:
            store.remove_sample(cluster_id)
        else:
            samples[cluster_id] = sample
    return samples


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

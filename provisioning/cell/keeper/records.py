"""What the keeper reads and writes of a cluster, as the cell's metadata store has it.

The formats are described in `brokers/core/crates/metadata/src/schema/cell.rs`. Times are Unix time
in milliseconds unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from brokers.metadata_records import BrokerStatus
from provisioning.cell.notes import CellHealth, Removal


class SpecState(StrEnum):
    """What the control plane lets a cluster do."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETED = "deleted"


@dataclass(frozen=True)
class Spec:
    """What the control plane wants; of the record, what concerns the keeper.

    `scale`: brokers when awake. `idle_timeout_ms`: it sleeps after so long without a client; 0 is
    never.
    """

    cluster_id: str
    generation: int
    state: SpecState
    scale: int
    idle_timeout_ms: int


class Phase(StrEnum):
    """What a cluster is doing."""

    ASLEEP = "asleep"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(frozen=True)
class Status:
    """What the keeper tells of a cluster. `restarts` counts since it woke up; `started_for` says
    for whom it did, for logs.
    """

    observed_generation: int
    phase: Phase
    since_ms: int
    brokers: tuple[BrokerStatus, ...] = ()
    connections: int = 0
    restarts: int = 0
    message: str = ""
    started_for: str = ""


@dataclass(frozen=True)
class Wake:
    """Somebody wants a cluster to run. `revision` tells this request from a later one."""

    requested_at_ms: int
    by: str
    revision: int


class StoreError(Exception):
    """The metadata store failed, or holds what cannot be understood."""


@dataclass(frozen=True)
class Wanted:
    """What is wanted of all clusters, by id. A watch from `revision` on misses nothing."""

    specs: Mapping[str, Spec]
    wakes: Mapping[str, Wake]
    revision: int


class Store(Protocol):
    """The cell's metadata store. Every call may wait, and raises `StoreError`."""

    def wanted(self) -> Wanted:
        """All specs and wake requests."""

    def statuses(self) -> Mapping[str, Status]:
        """All statuses, by cluster id."""

    def put_status(self, cluster_id: str, status: Status) -> None:
        """Writes a status."""

    def remove_wake(self, cluster_id: str, revision: int) -> None:
        """Removes a wake request, unless there is a later one."""

    def put_sample(self, cluster_id: str, taken_at_ms: int, content: Mapping[str, object]) -> None:
        """Writes a sample."""

    def removal(self, cluster_id: str) -> Removal | None:
        """What the control plane tells of a cluster that it purged."""

    def forget(self, cluster_id: str) -> None:
        """Removes all that the cell has of a purged cluster."""

    def health(self) -> CellHealth | None:
        """What was told of the cell last."""

    def put_health(self, health: CellHealth) -> None:
        """Tells how the cell's brokers are."""

    def watch(self, after_revision: int, timeout_s: float) -> int:
        """Waits for a change of a spec or wake request; gives the revision to go on from.

        That is `after_revision` where there was none until the time was up.
        """

    def interrupt(self) -> None:
        """Ends a watch that another thread waits in."""

"""The records that the keeper reads and writes in the cell's metadata store.

The formats are described in `brokers/core/crates/metadata/src/schema/cell.rs`. Times are Unix time
in milliseconds unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from brokers.metadata_records import BrokerStatus, Sample
from provisioning.cell.notes import CellHealth, Removal


class SpecState(StrEnum):
    """Whether the control plane permits a cluster to run."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETED = "deleted"


@dataclass(frozen=True)
class Spec:
    """A cluster's specification: those fields of the stored record that the keeper uses.

    `scale` is how many brokers the cluster has when awake. It sleeps after `idle_timeout_ms`
    without a client; 0 means never.
    """

    cluster_id: str
    generation: int
    state: SpecState
    scale: int
    idle_timeout_ms: int


class ClusterPhase(StrEnum):
    """What a cluster is doing."""

    ASLEEP = "asleep"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(frozen=True)
class Status:
    """A cluster's status, which the keeper writes.

    `since_ms`: since when it is in this phase. `restarts`: how many brokers ended by themselves
    since it woke. `started_for`: who asked for the start, for logs.
    """

    observed_generation: int
    phase: ClusterPhase
    since_ms: int
    brokers: tuple[BrokerStatus, ...] = ()
    connections: int = 0
    restarts: int = 0
    message: str = ""
    started_for: str = ""


@dataclass(frozen=True)
class Wake:
    """A request to run a cluster. `revision` distinguishes it from a later request."""

    requested_at_ms: int
    by: str
    revision: int


class StoreError(Exception):
    """The metadata store failed, or holds a record that cannot be read."""


@dataclass(frozen=True)
class DesiredClusters:
    """The specs and wake requests of all clusters, by id.

    A watch after `revision` misses no change of them.
    """

    specs: Mapping[str, Spec]
    wakes: Mapping[str, Wake]
    revision: int


class Store(Protocol):
    """The cell's metadata store. Every call may block, and raises `StoreError`."""

    def desired(self) -> DesiredClusters:
        """Reads all specs and wake requests."""

    def statuses(self) -> Mapping[str, Status]:
        """Reads all statuses, by cluster id."""

    def put_status(self, cluster_id: str, status: Status) -> None:
        """Writes a cluster's status."""

    def remove_wake(self, cluster_id: str, revision: int) -> None:
        """Removes a wake request, unless there is a later one."""

    def earlier_samples(self) -> Mapping[str, Sample]:
        """Reads the samples of clusters that a keeper of an earlier release stored here.

        Moves what that release stored beside them to where this one reads it.
        """

    def remove_earlier_sample(self, cluster_id: str) -> None:
        """Removes the sample of a cluster that a keeper of an earlier release stored."""

    def removal(self, cluster_id: str) -> Removal | None:
        """Reads the `Removal` of a purged cluster; None where there is none."""

    def forget(self, cluster_id: str) -> None:
        """Removes all records that the store has of a purged cluster."""

    def health(self) -> CellHealth | None:
        """Reads the cell's health as it was written last; None where it never was."""

    def put_health(self, health: CellHealth) -> None:
        """Writes the cell's health."""

    def watch(self, after_revision: int, timeout_s: float) -> int:
        """Waits up to `timeout_s` for a change of a spec or wake request after a revision.

        Returns the revision to watch from next, which is `after_revision` where nothing changed.
        """

    def interrupt(self) -> None:
        """Ends a watch that another thread waits in."""

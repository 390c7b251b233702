"""The status that people are shown of a cluster, from its row and from its cell's metadata."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, TypedDict

from brokers.errors import MetadataError
from brokers.metadata_records import ClusterStatus
from provisioning.cells import cell_store
from provisioning.choices import BrokerPhase, Intent, Phase
from provisioning.models import Cluster

logger = logging.getLogger(__name__)

UNREACHABLE = "The cell's metadata store does not answer."


class Condition(TypedDict):
    """One fact about a resource. `status`: `true`, `false` or `unknown`."""

    type: str
    status: str
    reason: str
    message: str


class ShownBroker(NamedTuple):
    """A broker of a cluster. `slot`: its number in the cluster, from 0, and its node id."""

    slot: int
    phase: BrokerPhase


@dataclass(frozen=True)
class Observation:
    """What the API shows as a cluster's `status`.

    `brokers` are sorted by slot; there are none where the cell does not answer. `cell` is the
    status that the keeper wrote; None where it wrote none or it cannot be read.
    """

    phase: Phase
    since: datetime | None
    observed_generation: int
    conditions: tuple[Condition, ...]
    connections: int | None = None
    restarts: int | None = None
    brokers: tuple[ShownBroker, ...] = ()
    cell: ClusterStatus | None = None


class ReadStatus(NamedTuple):
    """What the cell's metadata store says of a cluster. `reachable`: whether it answered."""

    reachable: bool
    status: ClusterStatus | None


def observe_cluster(cluster: Cluster) -> Observation:
    """Reads the cluster's status: one point read of its cell's metadata store."""
    return observation_read(cluster, read_status(cluster.pk))


def read_status(cluster_id: str) -> ReadStatus:
    """Reads a cluster's status, before its row is changed: a request does not wait behind that."""
    try:
        return ReadStatus(reachable=True, status=cell_store().status(cluster_id))
    except MetadataError as error:
        # The error's text names files and hosts of the service, so it is logged and not shown.
        logger.warning("observe.unknown", extra={"cluster": cluster_id, "error": str(error)})
        return ReadStatus(reachable=False, status=None)


def observation_read(cluster: Cluster, read: ReadStatus) -> Observation:
    """The status that follows from a cluster's row and what was read. Pure."""
    if not read.reachable:
        return Observation(
            phase=Phase.UNKNOWN,
            since=None,
            observed_generation=0,
            conditions=_conditions(
                cluster, _condition("Ready", "unknown", "CellUnreachable", UNREACHABLE)
            ),
        )
    return observation_of(cluster, read.status)


def observation_of(cluster: Cluster, status: ClusterStatus | None) -> Observation:
    """The status that follows from a cluster's row and the keeper's status together. Pure."""
    phase, condition = _phase(cluster, status)
    since_ms = None if status is None else status.since_ms
    return Observation(
        phase=phase,
        since=None if since_ms is None else datetime.fromtimestamp(since_ms / 1000, UTC),
        observed_generation=0 if status is None else status.observed_generation,
        conditions=_conditions(cluster, condition),
        connections=None if status is None else status.connections,
        restarts=None if status is None else status.restarts,
        brokers=_brokers(cluster, status),
        cell=status,
    )


def _brokers(cluster: Cluster, status: ClusterStatus | None) -> tuple[ShownBroker, ...]:
    """The brokers that the cluster is to have when awake, and others that still serve."""
    serving = set() if status is None else {broker.slot for broker in status.brokers}
    may_run = cluster.intent == Intent.ACTIVE and cluster.may_run
    is_awake = status is not None and status.phase in {"starting", "running"}
    absent = BrokerPhase.STARTING if may_run and is_awake else BrokerPhase.STOPPED
    return tuple(
        ShownBroker(slot, BrokerPhase.SERVING if slot in serving else absent)
        for slot in sorted({*range(cluster.scale), *serving})
    )


def _conditions(cluster: Cluster, ready: Condition) -> tuple[Condition, ...]:
    """The condition `ready`, and those that say how the organization's traffic is limited."""
    limit = cluster.traffic_limit
    if limit is None:
        return (ready,)
    # The limit holds within a second after the cell has the specification.
    reached_cell = cluster.reconciled_generation >= cluster.generation
    status = "true" if reached_cell else "unknown"
    kinds = {
        "ProduceSuspended": limit.refuses_produce,
        "FetchSuspended": limit.refuses_fetch,
        "Throttled": limit.throttles,
    }
    limited = (kind for kind, holds in kinds.items() if holds)
    return (ready, *(_condition(kind, status, kind, limit.reason) for kind in limited))


def _phase(  # noqa: PLR0911 (one line a case)
    cluster: Cluster, status: ClusterStatus | None
) -> tuple[Phase, Condition]:
    running = status is not None and status.phase in {"running", "stopping"}
    if cluster.intent != Intent.ACTIVE:
        if running or (status is not None and status.brokers):
            return Phase.DELETING, _condition("Ready", "false", "Deleting", "Its brokers stop.")
        message = f"It can be restored until {cluster.purge_at:%Y-%m-%d %H:%M} UTC."
        return Phase.DELETED, _condition("Ready", "false", "Deleted", message)
    if cluster.suspended:
        message = "The organization is suspended, or its email address is not verified."
        return Phase.SUSPENDED, _condition("Ready", "false", "Suspended", message)
    if cluster.suspend_wanted:
        message = "It was suspended on request, and runs again once it is resumed."
        return Phase.SUSPENDED, _condition("Ready", "false", "SuspendedOnRequest", message)
    if status is not None and status.phase == "running":
        message = _serving_words(cluster, status)
        return Phase.RUNNING, _condition("Ready", "true", "Running", message)
    if status is not None and status.phase == "failed":
        return Phase.FAILED, _condition("Ready", "false", "BrokersFailed", status.message)
    if cluster.provisioned_at is None:
        message = "Its brokers are started for the first time."
        return Phase.PROVISIONING, _condition("Ready", "false", "Provisioning", message)
    if status is not None and status.phase == "stopping":
        message = "Nobody is connected: it goes to sleep."
        return Phase.RUNNING, _condition("Ready", "true", "FallingAsleep", message)
    if status is not None and status.phase == "starting":
        message = "It wakes up; clients that connect wait."
        return Phase.ASLEEP, _condition("Ready", "true", "Waking", message)
    message = "It wakes up when a client connects."
    return Phase.ASLEEP, _condition("Ready", "true", "Asleep", message)


def _serving_words(cluster: Cluster, status: ClusterStatus) -> str:
    """What a running cluster's condition says: how many brokers serve, where one is missing."""
    serving = len({broker.slot for broker in status.brokers} & set(range(cluster.scale)))
    if 0 < serving < cluster.scale:
        return f"{serving} of its {cluster.scale} brokers serve."
    return "Its brokers serve."


def _condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message)

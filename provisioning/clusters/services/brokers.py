"""The brokers of a cluster, for what only they can answer."""

from __future__ import annotations

import time

from brokers.errors import MetadataError
from console.base.common.clock import now
from console.base.common.errors import Unavailable
from console.base.common.requests import current_request_id
from provisioning.cells import broker_access, cell_store, metadata_errors
from provisioning.choices import Intent, Phase
from provisioning.clusters.services.observation import Observation, observe_cluster
from provisioning.errors import ClusterAsleep, ClusterDeleted, ClusterStarting, ClusterSuspended
from provisioning.kafka import Access
from provisioning.models import Cluster

WAKE_TIMEOUT_S = 20.0
LOOK_EVERY_S = 0.1


def require_brokers(*, cluster: Cluster, wake: bool) -> Access:
    """The running brokers; with `wake` they are started, and waited for within 20 s.

    Raises `ClusterAsleep`, `ClusterStarting`, `ClusterSuspended`, `ClusterDeleted`, `Unavailable`.
    """
    if cluster.intent != Intent.ACTIVE:
        raise ClusterDeleted
    if not cluster.may_run:
        raise ClusterSuspended
    observation = observe_cluster(cluster)
    if not serving(observation) and wake:
        observation = _wake(cluster)
    if observation.phase is Phase.UNKNOWN:
        raise Unavailable("The cell's metadata store does not answer.")
    if not serving(observation) or observation.cell is None:
        starting = observation.cell is not None and observation.cell.phase == "starting"
        if starting or wake:
            raise ClusterStarting("Its brokers do not serve yet.", retry_after_s=1)
        raise ClusterAsleep("Add wake=true to wake it.")
    return broker_access(cluster.pk, observation.cell)


def serving(observation: Observation) -> bool:
    """Whether brokers answer."""
    cell = observation.cell
    return cell is not None and cell.phase == "running" and bool(cell.brokers)


def _wake(cluster: Cluster) -> Observation:
    moment_ms = int(now().timestamp() * 1000)
    with metadata_errors():
        by = f"console {current_request_id()}"
        cell_store().request_wake(cluster.pk, requested_at_ms=moment_ms, by=by)
    deadline = time.monotonic() + WAKE_TIMEOUT_S
    while not serving(observation := observe_cluster(cluster)):
        if time.monotonic() >= deadline:
            break
        time.sleep(LOOK_EVERY_S)
    return observation


def sample_of(cluster: Cluster) -> tuple[int, list[dict[str, object]]] | None:
    """When the keeper looked last (Unix ms), and the groups that it saw; None if it never did."""
    try:
        sample = cell_store().sample(cluster.pk)
    except MetadataError as error:
        raise Unavailable("The cell's metadata store does not answer.") from error
    if sample is None:
        return None
    return sample.taken_at_ms, list(sample.content.get("groups", []))

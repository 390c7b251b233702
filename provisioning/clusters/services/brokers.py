"""Reaches the brokers of a cluster, for requests that only they can answer."""

from __future__ import annotations

import time

from console.base.common.clock import now, unix_ms
from console.base.common.errors import Unavailable
from console.base.common.requests import current_request_id
from console.base.common.transactions import outside_transaction
from provisioning.cell.samples import sampled_groups
from provisioning.cells import broker_access, cell_store, metadata_errors
from provisioning.choices import Intent, Phase
from provisioning.clusters.services.observation import Observation, observe_cluster
from provisioning.clusters.services.samples import newest_sample
from provisioning.errors import ClusterAsleep, ClusterDeleted, ClusterStarting, ClusterSuspended
from provisioning.kafka import Access
from provisioning.models import Cluster

WAKE_TIMEOUT_S = 20.0
LOOK_EVERY_S = 0.1


def require_brokers(*, cluster: Cluster, wake: bool) -> Access:
    """Access to a cluster's running brokers.

    With `wake` it starts the brokers of a sleeping cluster and waits for them for at most
    `WAKE_TIMEOUT_S`. Raises `ClusterAsleep`, `ClusterStarting`, `ClusterSuspended`,
    `ClusterDeleted`, `Unavailable`.
    """
    if cluster.intent != Intent.ACTIVE:
        raise ClusterDeleted
    if not cluster.may_run:
        raise ClusterSuspended
    observation = observe_cluster(cluster)
    if not is_serving(observation) and wake:
        observation = _wake_cluster(cluster)
    if observation.phase is Phase.UNKNOWN:
        raise Unavailable("The cell's metadata store does not answer.")
    if not is_serving(observation) or observation.cell is None:
        starting = observation.cell is not None and observation.cell.phase == "starting"
        if starting or wake:
            raise ClusterStarting("Its brokers do not serve yet.", retry_after_s=1)
        raise ClusterAsleep("Add wake=true to wake it.")
    return broker_access(cluster.pk, observation.cell)


def is_serving(observation: Observation) -> bool:
    """Whether the keeper says that the cluster's brokers run and where they are."""
    cell = observation.cell
    return cell is not None and cell.phase == "running" and bool(cell.brokers)


def _wake_cluster(cluster: Cluster) -> Observation:
    moment_ms = int(now().timestamp() * 1000)
    with metadata_errors():
        by = f"console {current_request_id()}"
        cell_store().request_wake(cluster.pk, requested_at_ms=moment_ms, by=by)
    deadline = time.monotonic() + WAKE_TIMEOUT_S
    while not is_serving(observation := observe_cluster(cluster)):
        if time.monotonic() >= deadline:
            break
        with outside_transaction("a cluster that wakes"):
            time.sleep(LOOK_EVERY_S)
    return observation


def sample_of(cluster: Cluster) -> tuple[int, list[dict[str, object]]] | None:
    """The moment of the keeper's last sample (Unix ms) and its groups; None where there is none.

    Raises `Unavailable`.
    """
    sample = newest_sample(organization_id=cluster.organization_id, cluster_id=cluster.pk)
    if sample is None:
        return None
    with metadata_errors():
        status = cell_store().status(cluster.pk)
    return sample.taken_at_ms, sampled_groups(sample, status, unix_ms(now()))

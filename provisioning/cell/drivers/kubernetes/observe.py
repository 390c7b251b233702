"""Turns the pods and Deployments of a cluster into observations of its brokers: pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from provisioning.cell.drivers.base import BrokerObservation, BrokerState, Endpoints
from provisioning.cell.drivers.kubernetes.manifests import SLOT, Manifest
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions

# The exit status of a broker that refuses its settings, see `brokers/__main__.py`.
EXIT_USAGE = 2
FINISHED = {"Succeeded", "Failed"}


def _never(_node: str) -> bool:
    return False


def observe_brokers(
    deployments: Sequence[Manifest],
    pods: Sequence[Manifest],
    options: KubernetesOptions,
    is_lost: Callable[[str], bool] = _never,
) -> tuple[BrokerObservation, ...]:
    """The brokers of a cluster, sorted by slot.

    `is_lost` says of a node, by name, whether it is lost.
    """
    replicas = {
        slot_of(deployment): int(deployment["spec"]["replicas"]) for deployment in deployments
    }
    by_slot: dict[int, list[Manifest]] = {slot: [] for slot in replicas}
    for pod in pods:
        if pod["status"].get("phase") not in FINISHED:
            by_slot.setdefault(slot_of(pod), []).append(pod)
    failures = {slot_of(deployment): _replica_failure_of(deployment) for deployment in deployments}
    brokers = (
        _observe_broker(slot, replicas.get(slot, 0), by_slot[slot], failures.get(slot, ""), options)
        for slot in sorted(by_slot)
    )
    return tuple(
        replace(broker, lost=bool(broker.machine) and is_lost(broker.machine))
        for broker in brokers
        if broker is not None
    )


def slot_of(manifest: Manifest) -> int:
    """The slot of a broker's Deployment or pod."""
    return int(manifest["metadata"]["labels"][SLOT])


def instance_of(pod: Manifest) -> str:
    """The pod and the number of its container's restarts, which together name one process."""
    return f"{pod['metadata']['name']}.{_container_status(pod).get('restartCount', 0)}"


def is_ending(pod: Manifest) -> bool:
    """Whether the deletion of the object was requested."""
    return "deletionTimestamp" in pod["metadata"]


def is_node_ready(node: Manifest) -> bool:
    """Whether a node is ready and its deletion was not requested."""
    return _condition_of(node, "Ready").get("status") == "True" and not is_ending(node)


def _observe_broker(
    slot: int,
    replicas: int,
    pods: Sequence[Manifest],
    failure: str,
    options: KubernetesOptions,
) -> BrokerObservation | None:
    if not replicas:
        if not pods:
            return None
        return BrokerObservation(
            slot, BrokerState.STOPPING, instance_of(pods[0]), machine=_node_of(pods[0])
        )
    live = [pod for pod in pods if not is_ending(pod)]
    if not live:
        return BrokerObservation(slot, BrokerState.WAITING, message=failure)
    pod = max(live, key=lambda candidate: str(candidate["metadata"]["creationTimestamp"]))
    container = _container_status(pod)
    restarts = int(container.get("restartCount", 0))
    name, node = instance_of(pod), _node_of(pod)
    if _is_ready(pod):
        return BrokerObservation(
            slot, BrokerState.RUNNING, name, endpoints=_endpoints_of(pod, options), machine=node
        )
    last = container.get("lastState", {}).get("terminated") or container.get("state", {}).get(
        "terminated", {}
    )
    message = str(last.get("message", "")).strip()
    if last.get("exitCode") == EXIT_USAGE:
        return BrokerObservation(
            slot, BrokerState.FAILED, name, None, restarts, message, machine=node
        )
    waiting = container.get("state", {}).get("waiting", {})
    state = BrokerState.WAITING if restarts and waiting else BrokerState.STARTING
    reasons = [waiting.get("message", ""), message, _unscheduled_reason(pod)]
    text = next((reason for reason in reasons if reason), "")
    return BrokerObservation(slot, state, name, None, restarts, text, machine=node)


def _node_of(pod: Manifest) -> str:
    return str(pod.get("spec", {}).get("nodeName", ""))


def _endpoints_of(pod: Manifest, options: KubernetesOptions) -> Endpoints:
    address = pod["status"]["podIP"]
    if ":" in address:
        address = f"[{address}]"
    return Endpoints(
        kafka=f"{address}:{options.kafka_port}",
        metrics=f"{address}:{options.metrics_port}",
        link=f"{address}:{options.link_port}",
    )


def _container_status(pod: Manifest) -> dict[str, Any]:
    statuses = pod["status"].get("containerStatuses") or [{}]
    status: dict[str, Any] = statuses[0]
    return status


def _is_ready(pod: Manifest) -> bool:
    return _condition_of(pod, "Ready").get("status") == "True" and bool(pod["status"].get("podIP"))


def _unscheduled_reason(pod: Manifest) -> str:
    condition = _condition_of(pod, "PodScheduled")
    return str(condition.get("message", "")) if condition.get("status") == "False" else ""


def _replica_failure_of(deployment: Manifest) -> str:
    condition = _condition_of(deployment, "ReplicaFailure")
    return str(condition.get("message", "")) if condition.get("status") == "True" else ""


def _condition_of(manifest: Manifest, kind: str) -> dict[str, Any]:
    for condition in manifest["status"].get("conditions") or []:
        if condition["type"] == kind:
            named: dict[str, Any] = condition
            return named
    return {}

"""A stand-in for the kubelet: to the API server it has nodes that are ready, with pods on them.

It has no containers. `Marking` only writes that a pod runs and is ready, which suffices for tests
with many pods. `tests/kubernetes/pod_process.py` runs a pod's container as a process of this
machine. Started by hand it uses `Marking`: `python -m tests.kubernetes.stand_in_kubelet KUBECONFIG
NODES`.
"""

from __future__ import annotations

import itertools
import logging
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

from tests.kubernetes.client import Client

LOGGER = logging.getLogger(__name__)

LEASE_S = 10
THREADS = 8
PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CAPACITY = {"cpu": "10k", "memory": "10Ti", "pods": "20k", "ephemeral-storage": "10Ti"}

Pod = dict[str, Any]


class Containers(Protocol):
    """The interface of what runs pods, or only says that they run."""

    def seen(self, pod: Pod) -> None:
        """Handles a pod that is new or has changed. It is called at each change."""

    def gone(self, pod: Pod) -> None:
        """Handles a pod that was deleted."""

    def close(self) -> None:
        """Ends all pods, and waits for their end."""


class StandInKubelet:
    """Keeps some nodes, each in a zone of its own, until `close`."""

    def __init__(
        self,
        client: Client,
        containers: Containers,
        nodes: Sequence[str],
        capacity: Mapping[str, str] = CAPACITY,
    ) -> None:
        self._client = client
        self._capacity = capacity
        self._containers = containers
        self._nodes = frozenset(nodes)
        self._closed = threading.Event()
        for number, name in enumerate(nodes):
            self._register(name, zone=f"zone-{number}")
        pods = client.get(PODS)
        for pod in pods["items"]:
            self._on_pod("ADDED", pod)
        self._watch = client.watch(PODS, pods["metadata"]["resourceVersion"])
        self._threads = [
            threading.Thread(target=run, name=f"stand-in {run.__name__}", daemon=True)
            for run in (self._follow, self._renew)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Deletes the nodes, ends what runs on them, and closes the client."""
        self._closed.set()
        self._watch.close()
        for thread in self._threads:
            thread.join()
        self._containers.close()
        for name in sorted(self._nodes):
            self._client.ask("DELETE", f"{NODES}/{name}")
        self._client.close()

    def _follow(self) -> None:
        for event in self._watch:
            self._on_pod(event["type"], event["object"])
        assert self._closed.is_set(), "the watch of pods ended"

    def _on_pod(self, event: str, pod: Pod) -> None:
        if pod["spec"].get("nodeName") not in self._nodes:
            return
        if event == "DELETED":
            self._containers.gone(pod)
        else:
            self._containers.seen(pod)

    def _register(self, name: str, zone: str) -> None:
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
        }
        assert self._client.ask("POST", NODES, node).status == HTTPStatus.CREATED
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "StandIn",
            "lastHeartbeatTime": now(),
            "lastTransitionTime": now(),
        }
        status = {
            "capacity": self._capacity,
            "allocatable": self._capacity,
            "conditions": [ready],
        }
        changed = self._client.patch(f"{NODES}/{name}/status", {"status": status})
        assert changed.status == HTTPStatus.OK, changed
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {**_renewed(), "holderIdentity": name, "leaseDurationSeconds": 4 * LEASE_S},
        }
        self._client.ask("POST", LEASES, lease)

    def _renew(self) -> None:
        """Renews the nodes' leases, or the controllers would evict their pods within a minute."""
        while not self._closed.wait(LEASE_S):
            for name in sorted(self._nodes):
                self._client.patch(f"{LEASES}/{name}", {"spec": _renewed()})


class Marking:
    """Marks pods as running once they are bound to a node, and as ended once that is requested.

    Their addresses begin with `network`. Subclasses may override `mark` and `end`.
    """

    def __init__(self, client: Client, network: int = 10) -> None:
        self._client = client
        self._network = network
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="marking")
        self._addresses = itertools.count(1)
        self._marked: set[str] = set()
        # The pods that wait after `hold`; None where new pods run at once.
        self._waiting: list[Pod] | None = None

    def hold(self) -> None:
        """Has new pods wait instead of running."""
        self._waiting = []

    def go_on(self) -> None:
        """Lets waiting and new pods run."""
        waiting, self._waiting = self._waiting or [], None
        for pod in waiting:
            self.seen(pod)

    def seen(self, pod: Pod) -> None:
        """See `Containers`."""
        uid = pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"]:
            self._submit(self.end, pod)
        elif self._waiting is not None:
            self._waiting.append(pod)
        elif uid not in self._marked:
            self._marked.add(uid)
            number = next(self._addresses)
            places = (self._network, number >> 16, number >> 8 & 255, number & 255)
            self._submit(self.mark, pod, ".".join(map(str, places)))

    def gone(self, pod: Pod) -> None:
        """See `Containers`."""
        self._marked.discard(pod["metadata"]["uid"])

    def close(self) -> None:
        """See `Containers`."""
        self._pool.shutdown()

    def _submit(self, call: Any, *arguments: Any) -> None:  # noqa: ANN401 (as `submit` has it)
        future: Future[None] = self._pool.submit(call, *arguments)
        future.add_done_callback(_raise)

    def mark(self, pod: Pod, address: str) -> None:
        """Writes that a pod runs at this address."""
        name = pod["spec"]["containers"][0]["name"]
        running = {"running": {"startedAt": now()}}
        status = pod_status(address, container_status(pod, name, state=running, ready=True))
        self._client.patch(f"{path_of(pod)}/status", {"status": status})

    def end(self, pod: Pod) -> None:
        """Writes that a pod has ended."""
        end(self._client, pod)


def end(client: Client, pod: Pod) -> None:
    """Deletes a pod that was asked to end, because nothing of it runs any more."""
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
    client.ask("DELETE", path_of(pod), options)


def container_status(
    pod: Pod,
    name: str,
    *,
    state: dict[str, Any],
    ready: bool,
    restarts: int = 0,
    last_state: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A container's status as a kubelet writes it."""
    return {
        "name": name,
        "image": pod["spec"]["containers"][0]["image"],
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
        "lastState": last_state or {},
    }


def pod_status(address: str, container: dict[str, Any], phase: str = "Running") -> dict[str, Any]:
    """A pod's status, ready where its container is."""
    kinds = {"PodScheduled": True, "Initialized": True}
    kinds |= {"ContainersReady": container["ready"], "Ready": container["ready"]}
    return {
        "phase": phase,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now(),
        "conditions": [
            {"type": kind, "status": str(holds), "lastTransitionTime": now()}
            for kind, holds in kinds.items()
        ],
        "containerStatuses": [container],
    }


def path_of(pod: Pod) -> str:
    """The path of a pod at the API server."""
    named = pod["metadata"]
    return f"/api/v1/namespaces/{named['namespace']}/pods/{named['name']}"


def now() -> str:
    """The current time in the form of Kubernetes."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _renewed() -> dict[str, str]:
    return {"renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}


def _raise(future: Future[None]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        LOGGER.error("the status of a pod could not be written", exc_info=error)


def main(kubeconfig: str, nodes: str) -> None:
    """Marks pods until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    client = Client(Path(kubeconfig))
    names = [f"node-{number}" for number in range(int(nodes))]
    kubelet = StandInKubelet(client, Marking(client), names)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    stop.wait()
    kubelet.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A cell whose brokers are real pods.

It has etcd for metadata, a folder of the node as the DFS, a keeper, and a gateway outside the pods'
network.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokers.metadata import CellStore, ClusterStatus
from brokers.secrets import create_cell_secret
from provisioning.cell.drivers.kubernetes.manifests import SETTINGS_FOLDER, namespace_of
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions, Resources
from provisioning.cell.keeper.kubernetes import KubernetesSettings
from provisioning.cell.keeper.settings import CellSettings, KeeperSettings, LoopSettings
from tests.brokers.logscan import LogScan
from tests.etcd import EtcdServer
from tests.gateway.cells import Cell, until
from tests.kubernetes.client import Answer, Client
from tests.kubernetes.image.build import Image
from tests.kubernetes.image.contents import USER
from tests.kubernetes.pods.cluster import Cluster
from tests.provisioning.keeper.processes import KeeperServer
from tests.s3 import S3Server

# Few threads and partitions, because two cores are shared with all of Kubernetes.
BROKER: Mapping[str, Mapping[str, object]] = {
    "topics": {"offsets_partitions": 4},
    "groups": {"initial_rebalance_delay_ms": 0},
    "threads": {"runtime": 1},
    "lane": {"roll_after_ms": 500},
}


# The file with the keys to the bucket, in a broker's pod.
KEY_FILE = "s3-credentials"


@dataclass(frozen=True)
class S3Bucket:
    """A bucket of an S3 server that pods can reach too."""

    server: S3Server
    name: str

    @property
    def location(self) -> str:
        """The location for processes of this machine."""
        return self.server.location(self.name)

    @property
    def seen_by_brokers(self) -> str:
        """The location for brokers in pods."""
        own = str(self.server.key_file)
        return self.location.replace(own, f"{SETTINGS_FOLDER}/{KEY_FILE}")

    def copy(self, folder: Path) -> None:
        """Copies all of its objects to files."""
        client = self.server.client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.name):
            for content in page.get("Contents", []):
                path = folder / content["Key"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(
                    client.get_object(Bucket=self.name, Key=content["Key"])["Body"].read()
                )


class PodCell(Cell):
    """A cell with the parts that gateway and control plane need."""

    def __init__(
        self,
        folder: Path,
        kubernetes: Cluster,
        image: Image,
        etcd: EtcdServer,
        bucket: S3Bucket | None = None,
    ) -> None:
        """`bucket`: by default a folder beside the DFS."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.kubernetes = kubernetes
        self.image = image
        self.etcd = etcd
        self.bucket = bucket
        self.root = folder.name
        self.metadata = etcd.location(self.root)
        self.store = CellStore(self.metadata)
        self.secret = create_cell_secret(folder / "secret")
        self.client = Client(kubernetes.kubeconfig)
        for name in ("dfs", "files"):
            (folder / name).mkdir()
        if bucket is not None:
            (folder / "files" / KEY_FILE).write_bytes(bucket.server.key_file.read_bytes())

    def add_volume(self, cluster_id: str) -> None:
        """Creates a cluster's folder on the DFS, to which its brokers may write."""
        folder = self.folder / "dfs" / cluster_id
        folder.mkdir()
        os.chown(folder, USER, USER)

    def settings(
        self,
        *,
        options: Mapping[str, Any] | None = None,
        **broker: Mapping[str, object],
    ) -> KeeperSettings:
        """The keeper's settings, with further `options` of the driver and sections of brokers."""
        driver_options = KubernetesOptions(
            cell=self.folder.name,
            image=self.image.name,
            dfs={"hostPath": {"path": f"{self.folder}/dfs/{{cluster}}", "type": "Directory"}},
            **{
                "image_pull_policy": "Never",
                # Long, so that a test which waits for a stop waits for the broker and not for this
                # limit.
                "stop_timeout_s": 100,
                "resources": Resources(cpu="10m", memory="64Mi"),
                **(options or {}),
            },
        )
        driver = KubernetesSettings(
            options=driver_options,
            kubeconfig=str(self.kubernetes.kubeconfig),
            broker_files=self.folder / "files",
            broker_bucket=self.bucket.seen_by_brokers if self.bucket else "/dfs/{cluster}/bucket",
        )
        return KeeperSettings(
            CellSettings(
                self.metadata,
                self.folder / "dfs",
                self.bucket.location if self.bucket else str(self.folder / "bucket"),
                self.folder / "secret",
            ),
            LoopSettings(
                self.folder / "keeper",
                scrape_interval_ms=200,
                sample_interval_ms=500,
                awake_min_ms=1,
            ),
            driver,
            {**BROKER, **broker},
        )

    def keeper(self, **changes: Any) -> KeeperServer:  # noqa: ANN401 (of `settings`)
        """A keeper as a process outside of Kubernetes."""
        return KeeperServer(self.settings(**changes))

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Asks the API server; once more where it had closed the connection."""
        try:
            return self.client.ask(method, path, body)
        except OSError:
            return self.client.ask(method, path, body)

    def pods(self, cluster_id: str) -> list[dict[str, Any]]:
        """The pods of a cluster that were not asked to end."""
        path = f"/api/v1/namespaces/{namespace_of(cluster_id)}/pods"
        items: list[dict[str, Any]] = self.ask("GET", path).document["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def pod(self, cluster_id: str) -> dict[str, Any]:
        """The only pod of a cluster."""
        (pod,) = self.pods(cluster_id)
        return pod

    def broker_process(self, cluster_id: str) -> int:
        """The pid, as this machine sees it, of the broker in the only pod of a cluster."""
        return self.process_in(self.pod(cluster_id))

    def process_in(self, pod: Mapping[str, Any]) -> int:
        """The pid, as this machine sees it, of the broker in a pod."""
        pids = self.kubernetes.node.processes(pod["metadata"]["uid"])
        (pid,) = [pid for pid in pids if b"\0serve\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return pid

    def kill_broker(self, cluster_id: str) -> None:
        """Kills the broker, and waits until the pod's first process has started another one."""
        pod = self.pod(cluster_id)
        self.wait_other_process(pod, self.kill_process(pod))

    def kill_process(self, pod: Mapping[str, Any]) -> int:
        """Kills the broker in a pod. Returns its pid."""
        pid = self.process_in(pod)
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_other_process(self, pod: Mapping[str, Any], pid: int) -> None:
        """Waits until a pod has a broker that is not `pid`."""

        def another() -> bool:
            try:
                return self.process_in(pod) != pid
            except (ValueError, OSError):
                return False

        until(another, f"another broker than {pid}")

    def delete_pod(self, cluster_id: str, *, grace_s: int | None = None) -> None:
        """Deletes the pod, and waits until it is gone and another one serves."""
        named = self.pod(cluster_id)["metadata"]
        path = f"/api/v1/namespaces/{named['namespace']}/pods/{named['name']}"
        body = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        assert self.ask("DELETE", path, body).status in {200, 202}

        def replaced() -> bool:
            names = {pod["metadata"]["uid"] for pod in self.pods(cluster_id) if is_ready(pod)}
            return bool(names) and named["uid"] not in names

        until(replaced, f"another pod than {named['name']}")

    def status(self, cluster_id: str) -> ClusterStatus | None:
        """The cluster's status as the keeper wrote it last."""
        return self.store.status(cluster_id)

    def wait_phase(self, cluster_id: str, phase: str) -> ClusterStatus:
        """Waits until the keeper has written the phase."""

        def status() -> ClusterStatus | None:
            current = self.status(cluster_id)
            return current if current is not None and current.phase == phase else None

        until(status, f"{cluster_id} {phase}")
        current = status()
        assert current is not None
        return current

    def scan(self, cluster_id: str) -> LogScan:
        """The records on storage, read without any of our code."""
        bucket = self.folder / "dfs" / cluster_id / "bucket"
        if self.bucket is not None:
            bucket = self.folder / "bucket-as-it-is"
            self.bucket.copy(bucket)
        return LogScan(
            self.folder / "dfs",
            bucket,
            self.etcd.records(self.root, cluster_id),
            cluster_id,
        )

    def explain(self, cluster_id: str) -> str:
        """What Kubernetes reports of a cluster, for a failed test."""
        space = namespace_of(cluster_id)
        events = self.ask("GET", f"/api/v1/namespaces/{space}/events").document["items"]
        lines = [f"{event['reason']}: {event['message']}" for event in events]
        lines += [json.dumps(pod["status"]) for pod in self.pods(cluster_id)]
        lines += [path.read_text()[-3000:] for path in self.folder.rglob("*.log")]
        for log in (self.kubernetes.node.folder / "logs").rglob("*.log"):
            lines += [f"{log.parent.parent.name}:", log.read_text(errors="replace")[-3000:]]
        return "\n".join(lines)

    def remove_cluster(self, cluster_id: str) -> None:
        """Deletes a cluster's namespace without waiting, whether there is a keeper or not."""
        self.ask("DELETE", f"/api/v1/namespaces/{namespace_of(cluster_id)}")

    def close(self) -> None:
        """Closes the connections, and removes the folder."""
        self.client.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is ready."""
    conditions = pod["status"].get("conditions", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def restarts_of(pod: Mapping[str, Any]) -> int:
    """How often Kubernetes restarted a pod's container."""
    return sum(int(status["restartCount"]) for status in pod["status"]["containerStatuses"])

"""The node of the tests' Kubernetes: containerd, runc and a kubelet in their own namespaces."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from provisioning.cell.drivers.kubernetes.api import Api, Lost
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.pods import packages
from tests.kubernetes.pods.needs import cgroup_trees
from tests.kubernetes.pods.network import BRIDGE, Network
from tests.peer.processes import bound_command

NAME = "node-1"
ZONE = "zone-1"
IDENTITY = f"system:node:{NAME}"
# A time limit that a test reaches only where something is wrong.
LIMIT_S = 180.0
LOOK_S = 0.05
SERVERS = packages.ROOT / ".tools" / "bin"
KUBELET_PORT, HEALTH_PORT = 16_250, 16_248
# Files of a new cgroup of version 1 that are empty until they are written.
INHERITED = ("cpuset.cpus", "cpuset.mems")
UNUSED_SNAPSHOTTERS = ("aufs", "btrfs", "devmapper", "zfs")


class Node:
    """A node within a `Network`, with which everything on it ends."""

    def __init__(self, folder: Path, network: Network) -> None:
        self.folder = folder
        self.network = network
        self.cgroup = f"freshet-{network.number}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def socket(self) -> Path:
        """The path of containerd's socket."""
        return self.folder / "containerd.sock"

    def start_runtime(self) -> None:
        """Starts containerd, and waits until it has the image of the pods' first process."""
        self._make_cgroups()
        for name in ("cni", "kubelet", "logs", "plugins"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "containerd.toml").write_text(self._containerd())
        (self.folder / "cni" / "10-pods.conflist").write_text(json.dumps(self._cni()))
        program = packages.TOOLS / "root" / "usr" / "bin" / "containerd"
        self._run("containerd", program, "-c", self.folder / "containerd.toml")
        self._until("containerd", lambda: self.ctr("version", check=False) != "")
        self.load_image(packages.TOOLS / "pause.tar")

    def start_kubelet(self, control_plane: ControlPlane) -> None:
        """Starts the kubelet, and waits until the node is ready."""
        control_plane.authority.issue(
            "kubelet",
            f"/O=system:nodes/CN={IDENTITY}",
            usage="serverAuth",
            names=(f"IP:{self.network.inside}",),
        )
        api = Api.connect(str(control_plane.kubeconfig()), timeout_s=LIMIT_S)
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps(self._kubelet(control_plane)))
        self._run(
            "kubelet",
            SERVERS / "kube",
            "kubelet",
            f"--config={config}",
            f"--kubeconfig={control_plane.kubeconfig(IDENTITY)}",
            f"--root-dir={self.folder / 'kubelet'}",
            f"--cert-dir={self.folder / 'kubelet' / 'certificates'}",
            f"--hostname-override={NAME}",
            f"--node-ip={self.network.inside}",
            f"--node-labels=topology.kubernetes.io/zone={ZONE}",
            "--v=2",
        )
        self._until("kubelet", lambda: is_ready(api))

    def load_image(self, archive: Path) -> None:
        """Imports an image, so that pods can use it."""
        self.ctr("images", "import", "--no-unpack", str(archive))

    def ctr(self, *arguments: str, check: bool = True) -> str:
        """Runs a command of `ctr`. Returns its output."""
        program = packages.TOOLS / "root" / "usr" / "bin" / "ctr"
        return self.network.run(
            program,
            "--address",
            self.socket,
            "--namespace=k8s.io",
            *arguments,
            environment=packages.environment(),
            check=check,
        )

    def processes(self, pod_uid: str) -> list[int]:
        """The pids of a pod's processes, as this machine sees them."""
        tree = cgroup_trees()[-1]
        groups = (tree / self.cgroup).rglob(f"*{pod_uid}*")
        files = (path for group in groups for path in group.rglob("cgroup.procs"))
        return sorted({int(line) for file in files for line in file.read_text().split()})

    def close(self) -> None:
        """Removes the cgroups of the node after it has ended."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        remaining = [tree / self.cgroup for tree in cgroup_trees() if (tree / self.cgroup).exists()]
        deadline = time.monotonic() + LIMIT_S
        pause = threading.Event()
        while remaining:
            remaining = [group for group in remaining if not _removed(group)]
            assert time.monotonic() < deadline, f"in use still: {remaining}"
            pause.wait(LOOK_S if remaining else 0)

    def _make_cgroups(self) -> None:
        for tree in cgroup_trees():
            group = tree / self.cgroup
            group.mkdir(exist_ok=True)
            for name in INHERITED:
                if (group / name).exists() and not (group / name).read_text().strip():
                    (group / name).write_text((tree / name).read_text())

    def _run(self, name: str, *command: str | os.PathLike[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                bound_command(self.network.command(command)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=packages.environment(),
            )

    def _until(self, name: str, holds: Callable[[], bool]) -> None:
        deadline, pause = time.monotonic() + LIMIT_S, threading.Event()
        while not holds():
            said = (self.folder / f"{name}.log").read_text(errors="replace")[-4000:]
            assert self._processes[name].poll() is None, f"{name} ended:\n{said}"
            assert time.monotonic() < deadline, f"{name} is not ready:\n{said}"
            pause.wait(LOOK_S)

    def _containerd(self) -> str:
        root, folder = packages.TOOLS / "root", self.folder
        cri = 'plugins."io.containerd.grpc.v1.cri"'
        runc = f"{cri}.containerd.runtimes.runc"
        unused = [
            f"io.containerd.snapshotter.v1.{snapshotter}" for snapshotter in UNUSED_SNAPSHOTTERS
        ]
        unused += ["io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
        return f"""version = 2
root = "{folder}/containerd"
state = "{folder}/state"
disabled_plugins = {json.dumps(unused)}
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[{cri}]
  sandbox_image = "{packages.PAUSE_IMAGE}"
  # Without CAP_SYS_RESOURCE no process may get a lower OOM score.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[{cri}.cni]
  bin_dir = "{root}/usr/lib/cni"
  conf_dir = "{folder}/cni"
[{cri}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"
[{runc}]
  runtime_type = "io.containerd.runc.v2"
[{runc}.options]
  BinaryName = "{root}/usr/sbin/runc"
  SystemdCgroup = false
"""

    def _cni(self) -> dict[str, Any]:
        ranges = [[{"subnet": self.network.pods, "gateway": self.network.gateway}]]
        addresses = {
            "type": "host-local",
            "dataDir": str(self.folder / "addresses"),
            "ranges": ranges,
        }
        bridge = {
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": True,
            "isDefaultGateway": True,
            "ipMasq": False,
            "hairpinMode": True,
            "ipam": addresses,
        }
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}

    def _kubelet(self, control_plane: ControlPlane) -> dict[str, Any]:
        keys = control_plane.authority
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.network.inside,
            "port": KUBELET_PORT,
            "readOnlyPort": 0,
            "healthzPort": HEALTH_PORT,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(keys.certificate("ca"))},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(keys.certificate("kubelet")),
            "tlsPrivateKeyFile": str(keys.key("kubelet")),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "podLogsDir": str(self.folder / "logs"),
            "volumePluginDir": str(self.folder / "plugins"),
            "resolvConf": "",
            "registerNode": True,
            "nodeStatusUpdateFrequency": "4s",
            # A full disk of the machine must not evict the test's pods.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
            # The node has few pods, and they start and end quickly.
            "maxPods": 60,
            "serializeImagePulls": False,
        }


def is_ready(api: Api) -> bool:
    """Whether the node is ready and may get pods."""
    try:
        node = api.get("Node", NAME)
    except Lost:
        return False
    conditions = [] if node is None else node["status"].get("conditions", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def _removed(group: Path) -> bool:
    """Removes a cgroup, which is possible once its last process has ended.

    Returns whether it is gone.
    """
    for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()

"""A rig of the Kubernetes driver over a real API server, with real brokers as processes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

from brokers.secrets import SUPER_USER, super_password
from provisioning.cell.drivers.base import BrokerObservation, ClusterPlan
from provisioning.cell.drivers.kubernetes.api import Api
from provisioning.cell.drivers.kubernetes.driver import KubernetesDriver
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions
from tests.kubernetes.pod_process import Processes
from tests.provisioning.driver_conformance import Rig, plan_of

TIMEOUT_S = 20.0
NUMBERS = itertools.count()


def options(folder: Path, **changes: Any) -> KubernetesOptions:  # noqa: ANN401 (any field)
    """Driver options of a cell whose DFS is a folder of this machine."""
    defaults = KubernetesOptions(
        cell=folder.name,
        image="freshet:tests",
        dfs={"hostPath": {"path": f"{folder}/dfs/{{cluster}}", "type": "DirectoryOrCreate"}},
        # Long: no test waits for the interval, and those that need a sweep call it.
        sweep_interval_s=3_600.0,
    )
    return replace(defaults, **changes)


def connect(kubeconfig: Path, own: KubernetesOptions) -> KubernetesDriver:
    """A driver with the parts that the keeper makes for it."""
    return KubernetesDriver(Api.connect(str(kubeconfig), timeout_s=TIMEOUT_S), own)


class KubernetesRig(Rig):
    """Runs real brokers over folders of the test."""

    def __init__(self, folder: Path, kubeconfig: Path, processes: Processes) -> None:
        number = next(NUMBERS)
        # Namespaces are deleted slowly, so each test has names of its own.
        self.cluster, self.neighbour = f"cl_conformance{number}", f"cl_neighbour{number}"
        self.folder = folder
        self.options = options(folder)
        self._kubeconfig = kubeconfig
        self._processes = processes
        for name in ("dfs", "bucket"):
            (folder / name).mkdir()

    def driver(self) -> KubernetesDriver:
        """See `Rig`."""
        return connect(self._kubeconfig, self.options)

    def plan(self, cluster_id: str, scale: int = 1, **sections: dict[str, object]) -> ClusterPlan:
        """See `Rig`."""
        password = super_password(bytes(32), cluster_id)
        settings: dict[str, dict[str, object]] = {
            "storage": {
                "dfs": self.folder / "dfs",
                "bucket": self.folder / "bucket",
                "metadata": self.folder / "metadata.sqlite",
                "cluster": cluster_id,
            },
            "listener": {},
            "security": {
                "users": [{"name": SUPER_USER, "password": password}],
                "super_users": [f"User:{SUPER_USER}"],
            },
            "topics": {"offsets_partitions": 4},
            "threads": {"runtime": 1},
            **sections,
        }
        return plan_of(cluster_id, scale, settings)

    def crash(self, broker: BrokerObservation) -> None:
        """See `Rig`."""
        self._processes.crash(broker.name.rpartition(".")[0])

    async def abandon(self, driver: Any) -> None:  # noqa: ANN401 (a `Driver`)
        """See `Rig`."""
        await driver.close()

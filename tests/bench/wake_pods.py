"""`wake` where the broker is a pod of a real Kubernetes, and metadata lies in etcd.

Keeper and gateway are processes of the release build outside the pods' network; the broker is the
release build in an image. A wake is: the gateway asks, the keeper has a Deployment scaled to one,
Kubernetes schedules and starts the pod, its probe succeeds, the keeper says so, and the gateway
connects. Kubernetes itself shares the two cores of the machine with all of that.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from provisioning.cell.drivers.kubernetes.options import CLUSTER_PLACE
from tests.bench import machine
from tests.bench.report import Report, progress
from tests.bench.service import CLUSTER, Service
from tests.bench.sides import (
    BROKER_CPU,
    FRESHET,
    FRESHET_PYTHON,
    GENERATOR_CPU,
    WORK,
    chosen,
    work_folder,
)
from tests.bench.wake import measure_wakes
from tests.etcd import running_etcd
from tests.kubernetes.image.build import build
from tests.kubernetes.image.contents import USER
from tests.kubernetes.pods import needs
from tests.kubernetes.pods.cluster import RunningCluster

SIDES = (FRESHET,)
ROUNDS = 30
NAME = "wake_pods"


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: each round is one wake. Raises `RuntimeError` where no pod can run."""
    chosen(SIDES, only)
    if lacks := needs.missing():
        message = f"this machine lacks {', '.join(lacks)}"
        raise RuntimeError(message)
    limits = machine.limits(work_folder(), GENERATOR_CPU, BROKER_CPU)
    (engine,) = FRESHET_PYTHON.parents[1].glob("lib/python3*/site-packages/brokers/_core*.so")
    image = build(brokers=True, engine=engine)
    # Kubernetes' servers work wherever there is a core.
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))
    with (
        tempfile.TemporaryDirectory() as folder,
        RunningCluster(image.archive) as kubernetes,
        running_etcd(Path(folder), kubernetes.network.outside) as etcd,
    ):
        progress("Kubernetes runs")
        driver: dict[str, object] = {
            "kind": "kubernetes",
            "kubeconfig": kubernetes.kubeconfig,
            "cell": "bench",
            "image": image.name,
            "image_pull_policy": "Never",
            "dfs": {"hostPath": {"path": str(WORK / NAME / "dfs" / CLUSTER_PLACE)}},
            "broker_bucket": f"/dfs/{CLUSTER_PLACE}/bucket",
        }
        service = Service(NAME, idle_timeout_ms=300, metadata=etcd.location(NAME), driver=driver)
        volume = service.folder / "dfs" / CLUSTER
        volume.mkdir()
        os.chown(volume, USER, USER)
        os.sched_setaffinity(0, {int(GENERATOR_CPU)})
        return measure_wakes(NAME, service, rounds or ROUNDS, {"machine": limits})

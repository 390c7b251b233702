"""A cell of many clusters on a real Kubernetes: made, swept, put to sleep, woken.

etcd, API server, controllers and scheduler are real, and so is the keeper, with the Kubernetes
driver, over a cell in an etcd of its own. Requests are those of the API server's audit log. The
nodes are a stand-in (`tests/kubernetes/stand_in_kubelet.py`, `Marking`) in a process of its own:
kwok would do the same for its nodes by more requests, and take 147 s of CPU to build; this one
takes a patch of the status of each pod, and no build.

What is not measured: brokers. A pod is marked as ready and no process runs in it. But a keeper that
could reach none would be another keeper, so each pod's address answers what it asks a broker: its
metrics each second, and a login with the list of groups every five (`stand_in_brokers.py`). The
answers are shorter than a broker's and cost the stand-in the CPU that is named; `keeper_counts`
says how many of those looks failed all the same. A keeper that ends by itself, because it is too
slow to keep the cell's lease say, is started again as its pod would be: `keepers_ended`
counts these, and the aim is 0.
Marked pods are ready sooner than real ones: seconds are those of keeper and Kubernetes alone.

The control plane's sweep is `sweep_clusters` in this process, with a PostgreSQL of its own, where
every cluster has something to be looked at and nothing to be changed in its cell.

`value` is the worst of the driver's sweeps over all clusters. `CLUSTERS` sets how many (500),
`SAMPLE_S` how often each one's groups are sampled (5, as keepers come): without samples, the cost
of the rest shows alone.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Sequence
from typing import Any

from brokers.secrets import read_cell_secret
from provisioning.cell.drivers.base import Answer
from provisioning.cell.keeper.cellstore import CellRecords
from provisioning.cell.keeper.kubernetes import KubernetesSettings, make_driver
from provisioning.cell.keeper.plan import cluster_plan
from provisioning.cell.keeper.settings import load_settings
from tests.bench import proc
from tests.bench.control_plane import ControlPlane
from tests.bench.report import Report, progress, spread
from tests.bench.sides import FRESHET, chosen
from tests.bench.simulated_cell import SimulatedCell, counts

SIDES = (FRESHET,)
ROUNDS = 3
CLUSTERS = 500
SAMPLE_S = 5
NAME = "cell_simulation"
# Long enough for one of the keeper's sweeps, which come each minute.
IDLE_S = 65.0
# What the clusters have come to when they were woken again.
GENERATION = 3


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: each round is one sweep."""
    chosen(SIDES, only)
    clusters = int(os.environ.get("CLUSTERS") or CLUSTERS)
    sample_s = int(os.environ.get("SAMPLE_S") or SAMPLE_S)
    # Nothing is compared side by side: Kubernetes and the keeper share all cores.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with SimulatedCell(NAME, clusters, sample_interval_ms=1000 * sample_s) as cell:
        stages = _run_stages(cell)
        swept = asyncio.run(_measure_sweeps(cell, rounds or ROUNDS))
        stored = cell.metadata_mib()
        reconciled = _measure_reconciling(cell, rounds or ROUNDS)
    return Report(
        bench=NAME,
        value=swept["sweep_seconds"]["max"],
        unit="s",
        peer=None,
        details={
            "clusters": clusters,
            "nodes": cell.nodes,
            "sample_s": sample_s,
            **stages,
            **swept,
            "control_plane": reconciled,
            "metadata_mib": stored,
            "aim": {"clusters": 10_000, "sweep_seconds": 60, "metadata_mib": 2048},
        },
    )


def _run_stages(cell: SimulatedCell) -> dict[str, Any]:
    """Measures all that a keeper does with the clusters: create, rest, sleep, wake."""
    cell.start_keeper()
    progress("the keeper runs")
    memory = {"began": _keeper_mib(cell)}
    created = cell.stage("create", lambda: cell.ask_to_wake(1), "running")
    memory["created"] = _keeper_mib(cell)
    idle = _measure_idle(cell)
    memory["idle"] = _keeper_mib(cell)
    slept = cell.stage("sleep", lambda: cell.ask_to_sleep(2), "asleep")
    memory["asleep"] = _keeper_mib(cell)
    asleep = _measure_idle(cell)
    woken = cell.stage("wake", lambda: cell.ask_to_wake(GENERATION), "running")
    memory["woken"] = _keeper_mib(cell)
    counted = cell.keeper_counts()
    cell.stop_keeper()
    return {
        "create": created,
        "running_idle": idle,
        "sleep": slept,
        "asleep_idle": asleep,
        "wake": woken,
        "keeper_resident_mib": memory,
        "keeper_counts": counted,
        "keepers_ended": cell.keepers_ended,
    }


def _keeper_mib(cell: SimulatedCell) -> float:
    assert cell.keeper is not None
    return round(proc.resident_mib([cell.keeper.pid]), 1)


def _measure_idle(cell: SimulatedCell) -> dict[str, Any]:
    """Measures what the cell costs while nothing happens."""
    progress(f"nothing happens for {IDLE_S:.0f} s")
    before = cell.cpu_seconds()
    with cell.kubernetes.recorded() as requests:
        cell.rest(IDLE_S)
    used = {name: now - before.get(name, 0.0) for name, now in cell.cpu_seconds().items()}
    shares = {name: round(100 * seconds / IDLE_S, 1) for name, seconds in used.items()}
    progress(f"nothing happened: {len(requests)} requests, in percent of a core {shares}")
    return {"seconds": IDLE_S, **counts(requests), "percent_of_a_core": shares}


async def _measure_sweeps(cell: SimulatedCell, rounds: int) -> dict[str, Any]:
    """Measures a new driver that takes all clusters over, and then its sweeps."""
    settings = load_settings(cell.keeper_config)
    assert isinstance(settings.driver, KubernetesSettings)
    secret = read_cell_secret(settings.cell.secret)
    records = CellRecords(settings.cell.metadata)
    statuses = records.statuses()
    plans = [
        cluster_plan(spec, settings, secret).caused_by(statuses[cluster_id].started_for)
        for cluster_id, spec in records.desired().specs.items()
    ]
    driver = make_driver(settings.driver)
    try:
        began = time.monotonic()
        with cell.kubernetes.recorded() as taking:
            await driver.start()
            answers = await asyncio.gather(*map(driver.apply, plans))
        taken_s = time.monotonic() - began
        assert {answer.answer for answer in answers} == {Answer.ACCEPTED}, answers
        progress(f"taken over in {taken_s:.1f} s")
        sweeps: list[float] = []
        cpu: list[float] = []
        with cell.kubernetes.recorded() as requests:
            for _ in range(rounds):
                began, used = time.monotonic(), time.process_time()
                written = await driver.sweep()
                sweeps.append(time.monotonic() - began)
                cpu.append(time.process_time() - used)
                progress(f"a sweep: {sweeps[-1]:.2f} s, {written} writes")
    finally:
        await driver.close()
    return {
        "take_over": {"seconds": round(taken_s, 2), **counts(taking)},
        "sweep_seconds": spread(sweeps),
        "sweep_cpu_seconds": spread(cpu),
        "sweeps": counts(requests),
    }


def _measure_reconciling(cell: SimulatedCell, rounds: int) -> dict[str, Any]:
    """Measures the control plane's sweep over all clusters, each with a generation new to it."""
    web = ControlPlane(NAME, cell.cell)
    seconds, cpu = [], []
    try:
        with web:
            _add_rows(web, cell)
            from console.base.common.tenancy import system_scope  # noqa: PLC0415 (needs settings)
            from provisioning.models import Cluster  # noqa: PLC0415
            from provisioning.reconciling.service import sweep_clusters  # noqa: PLC0415

            progress("the control plane has them")
            # The first has the cell learn limits, and is not measured.
            for number in range(rounds + 1):
                with system_scope():
                    Cluster.objects.update(reconciled_generation=0)
                began, used = time.monotonic(), time.process_time()
                looked_at = sweep_clusters()
                assert looked_at == len(cell.specs), looked_at
                if number:
                    seconds.append(time.monotonic() - began)
                    cpu.append(time.process_time() - used)
                    progress(f"a sweep of the control plane: {seconds[-1]:.1f} s")
    finally:
        shutil.rmtree(web.folder, ignore_errors=True)
    return {"sweep_seconds": spread(seconds), "sweep_cpu_seconds": spread(cpu)}


def _add_rows(web: ControlPlane, cell: SimulatedCell) -> None:
    """Adds rows for the clusters of the cell, all of one organization."""
    first, *others = (
        {"id": spec.id, "name": spec.name, "host": spec.host, "ports": list(spec.ports)}
        for spec in cell.specs
    )
    web.add_tenant(**first, generation=GENERATION)
    from console.base.common.tenancy import organization_scope  # noqa: PLC0415 (needs settings)
    from provisioning.models import Cluster  # noqa: PLC0415

    with organization_scope("org_bench"):
        like = Cluster.objects.get(pk=first["id"])
        same = {
            name: getattr(like, name)
            for name in ("organization", "project", "cell", "generation", "provisioned_at")
        }
        Cluster.objects.bulk_create([Cluster(**same, **other) for other in others])

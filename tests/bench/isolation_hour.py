"""All attacks of `isolation` at once, for an hour, on ten tenants under load.

Each victim produces at a steady rate; one of them logs in and lists topics by REST as well. The
attackers are held to half a core together. Before them is a control run, in which a loop burns that
half core. Both are made of slices of a minute; `value` is the worst ratio, over kinds, of the
median slice's 99th percentile to that of the control run.

The run fails where a shared process ended, a victim's broker was restarted, an acknowledged record
is not in the log, or a byte of a log is not in the usage files. The log is read from storage by
code that the engine does not share (`tests.brokers.logscan`), and so are the usage files
(`tests.spark.oracle`).

`--minutes` is the length of the attacks (default: 60); the control run takes a sixth of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import hostile
from tests.bench.control_plane import ControlPlane
from tests.bench.held import HalfCore
from tests.bench.isolation import (
    ATTACKER,
    LOST_MS,
    TOPIC,
    Latencies,
    Stage,
    list_steadily,
    log_in_steadily,
    produce_steadily,
    published_limits,
)
from tests.bench.placed import Pods
from tests.bench.report import Report, progress
from tests.bench.requests import percentiles
from tests.bench.service import CLUSTER, Service, start_part
from tests.bench.sides import BROKER_CPU, FRESHET, GENERATOR_CPU, chosen, work_folder
from tests.brokers.logscan import LogScan
from tests.metering.proof.agents import wait_until_recorded
from tests.metering.proof.usage_folder import UsageFolder
from tests.peer.processes import stop_servers
from tests.spark.oracle import roll_up

SIDES = (FRESHET,)
MINUTES = 60.0
CONTROL_SHARE = 1 / 6
SLICE_SECONDS = 60.0
VICTIMS = 10
RECORDS_PER_S = 50
INGRESS = "ingress_bytes"


class Siege:
    """Ten victims, their load, and what of it was acknowledged."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.clusters = [CLUSTER, *(f"cl_victim{number}" for number in range(2, VICTIMS + 1))]
        self.acked: Counter[str] = Counter()
        self.unknown: set[str] = set()
        service = stage.service
        self._bootstraps = {CLUSTER: service.bootstrap}
        for cluster_id in self.clusters[1:]:
            spec = service.add_cluster(cluster_id, cluster_id[3:], idle_timeout_ms=0)
            store = service.store.cluster(cluster_id)
            store.set_limits(published_limits())
            store.create_topic(TOPIC, partitions=3)
            stage.wake(cluster_id)
            self._bootstraps[cluster_id] = f"127.0.0.1:{spec.ports[0]}"

    def run(self, seconds: float) -> list[Latencies]:
        """The p99 of each kind in slices of so many seconds in all, in milliseconds."""
        slices = max(1, round(seconds / SLICE_SECONDS))
        measured = []
        for number in range(slices):
            measured.append(self._slice(seconds / slices))
            self.stage.check_processes()
            progress(f"slice {number + 1} of {slices}: {measured[-1]}")
        return measured

    def _slice(self, seconds: float) -> Latencies:
        logins: list[float] = []
        lists: list[float] = []
        others = [
            threading.Thread(target=partial(log_in_steadily, self.stage, seconds, logins)),
            threading.Thread(target=partial(list_steadily, self.stage, seconds, lists)),
        ]
        for thread in others:
            thread.start()
        with ThreadPoolExecutor(VICTIMS) as pool:
            p99s = list(pool.map(partial(self._produce, seconds), self.clusters))
        for thread in others:
            thread.join()
        return {
            "produce_p99_ms": statistics.median(p99s),
            "worst_produce_p99_ms": max(p99s),
            "login_p99_ms": percentiles(logins)["p99"],
            "list_p99_ms": percentiles(lists)["p99"],
        }

    def _produce(self, seconds: float, cluster_id: str) -> float:
        service, records = self.stage.service, round(RECORDS_PER_S * seconds)
        p99 = produce_steadily(service, self._bootstraps[cluster_id], records, RECORDS_PER_S)
        if p99 < LOST_MS:
            self.acked[cluster_id] += records
        else:
            # Some of its records were acknowledged; nobody counted them.
            self.unknown.add(cluster_id)
        return p99

    def restarts(self) -> dict[str, int]:
        """How often a victim's broker was restarted, where it was."""
        statuses = self.stage.service.store.statuses()
        counts = {cluster_id: statuses[cluster_id].restarts for cluster_id in self.clusters}
        return {cluster_id: count for cluster_id, count in counts.items() if count}


def run(
    rounds: int | None = None, only: Sequence[str] | None = None, minutes: float | None = None
) -> Report:
    """Runs it once; there are no rounds."""
    if rounds not in {None, 1}:
        message = "isolation_hour has no rounds: give --minutes"
        raise ValueError(message)
    chosen(SIDES, only)
    seconds = 60 * (minutes or MINUTES)
    with (
        Pods() as pods,
        contextlib.closing(Service("isolation_hour", idle_timeout_ms=0)) as service,
        tempfile.TemporaryDirectory(dir=work_folder()) as folder,
    ):
        with ControlPlane("isolation_hour", service.cell) as web:
            stage = Stage(service, web, Path(folder), pods)
            agent = _start_agent(service)
            try:
                stage.place("agent", agent.pid)
                os.sched_setaffinity(0, {int(GENERATOR_CPU)})
                siege = Siege(stage)
                progress(f"{VICTIMS} victims and an attacker run; placed by {pods.placed_by}")
                measured = _measure(siege, seconds)
                restarts = siege.restarts()
            except BaseException:
                stop_servers([agent])
                raise
        # The brokers end in order, so that the agent can come to the end of their lanes.
        service.stop()
        try:
            usage = UsageFolder(service.folder / "usage", Path(folder) / "late", seed=0)
            clusters = [*siege.clusters, ATTACKER]
            wait_until_recorded(service.folder / "dfs", clusters, usage)
        finally:
            stop_servers([agent])
        return _report(measured, restarts, _judge(service, siege, usage, Path(folder)))


def _start_agent(service: Service) -> Any:  # noqa: ANN401 (a process of any stream)
    folder = service.folder
    places = {name: folder / name for name in ("dfs", "bucket")}
    settings: dict[str, dict[str, object]] = {
        "cell": {"id": "local", "metadata": service.metadata, **places},
        "usage": {"location": folder / "usage", "progress": folder / "progress"},
    }
    for name in ("usage", "progress"):
        (folder / name).mkdir()
    return start_part(folder, "metering.agent", settings, "agent", cpus=BROKER_CPU)


Measured = dict[str, Any]


def _measure(siege: Siege, seconds: float) -> Measured:
    answers: dict[str, dict[str, int]] = {}
    cpu: dict[str, dict[str, float]] = {}
    siege.run(SLICE_SECONDS / 3)
    with HalfCore() as half_core:
        with half_core.burning(), siege.stage.counting_cpu(cpu, "control"):
            control = siege.run(seconds * CONTROL_SHARE)
        target = json.dumps(asdict(siege.stage.target))
        with contextlib.ExitStack() as attacks:
            for name in hostile.ATTACKS:
                answers[name] = attacks.enter_context(
                    half_core.attacking(hostile.__name__, name, target)
                )
            progress(f"{len(answers)} attacks at once, held by {half_core.held_by}")
            with siege.stage.counting_cpu(cpu, "attacked"):
                attacked = siege.run(seconds)
        return {
            "held_by": half_core.held_by,
            "placed_by": siege.stage.pods.placed_by,
            "cpu": cpu,
            "control": control,
            "attacked": attacked,
            "answers": answers,
        }


def _judge(service: Service, siege: Siege, usage: UsageFolder, folder: Path) -> dict[str, Any]:
    """Records that were lost, and bytes that were billed wrongly, by cluster if there are any."""
    billed = _billed_bytes(usage, folder)
    lost: dict[str, int] = {}
    wrong: dict[str, int] = {}
    stored_bytes: dict[str, int] = {}
    for cluster_id in [*siege.clusters, ATTACKER]:
        scan = LogScan(
            service.folder / "dfs", service.folder / "bucket", Path(service.metadata), cluster_id
        )
        records, stored = _in_log(scan)
        stored_bytes[cluster_id] = stored
        missing = siege.acked[cluster_id] - records
        if missing > 0 or (missing and cluster_id in siege.acked.keys() - siege.unknown):
            lost[cluster_id] = missing
        if stored != billed[cluster_id]:
            wrong[cluster_id] = billed[cluster_id] - stored
    return {"lost": lost, "billed_wrongly": wrong, "stored_bytes": stored_bytes}


def _in_log(scan: LogScan) -> tuple[int, int]:
    """Records and bytes of all batches of a cluster's topics."""
    records = stored = 0
    for topic in scan.topics.values():
        if topic.name.startswith("__"):
            continue
        for partition in range(topic.partitions):
            for batch in scan.batches(topic.name, partition):
                records += batch.next_offset - batch.base_offset
                stored += batch.size
    return records, stored


def _billed_bytes(usage: UsageFolder, folder: Path) -> Counter[str]:
    """Ingress bytes by cluster, of all days that a usage file may hold rows of."""
    emitted = [
        datetime.fromtimestamp(file.said["emitted_at_ms"] / 1000, UTC).date()
        for file in usage.files()
    ]
    # What was used before midnight may be recorded after it.
    days = {str(day - timedelta(days=before)) for day in emitted for before in (0, 1)}
    sums: Counter[str] = Counter()
    for day in sorted(days):
        manifest = folder / f"{day}.json"
        manifest.write_text(json.dumps(usage.run_manifest(day, day)))
        for row in roll_up(manifest).days:
            if row["meter"] == INGRESS:
                sums[row["cluster_id"]] += int(row["quantity"])
    return sums


def _report(measured: Measured, restarts: dict[str, int], judged: dict[str, Any]) -> Report:
    medians: dict[str, dict[str, float]] = defaultdict(dict)
    for name in ("control", "attacked"):
        for kind in measured["control"][0]:
            medians[name][kind] = statistics.median(slice_[kind] for slice_ in measured[name])
    ratios = {kind: medians["attacked"][kind] / p99 for kind, p99 in medians["control"].items()}
    failures = {"restarts": restarts, **{k: judged[k] for k in ("lost", "billed_wrongly")}}
    if any(failures.values()):
        message = f"the victims did not come through: {failures}"
        raise RuntimeError(message)
    return Report(
        bench="isolation_hour",
        value=max(ratios.values()),
        unit="ratio",
        peer=None,
        details={"p99_over_control": ratios, "medians_ms": medians, **measured, **judged},
    )

"""One tenant's latencies while another attacks what they share: gateway, keeper, web server.

A cell with a gateway, a keeper, a web server and two clusters, which have the limits that every
cluster has. The programs share a CPU as pods share a node's (`placed.py`). The victim produces at a
steady rate, logs in with new connections, and lists topics by REST, all at once. The attackers are
held to half a core. Before each attack is a control run in which a loop burns that half core; a
round's control is the median of its control runs. `value` is the worst ratio of a victim's 99th
percentile to that of the control run. `details` has all of them in milliseconds and as ratios, and
what the attackers were answered. The run fails where a shared process ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path

from brokers.metadata_records import ClusterLimits
from console.settings.sections import Limits
from tests.bench import hostile, proc
from tests.bench.bomb_batches import BOMBS
from tests.bench.control_plane import ControlPlane
from tests.bench.generators import Load as KafkaLoad
from tests.bench.generators import run_light
from tests.bench.held import HalfCore
from tests.bench.placed import BROKER, Pods
from tests.bench.probe import NotServedError
from tests.bench.report import Report, progress, spread
from tests.bench.requests import Load, Request, percentiles, run_loads
from tests.bench.service import CLUSTER, PASSWORD, USER, Service
from tests.bench.sides import FRESHET, GENERATOR_CPU, chosen, work_folder

SIDES = (FRESHET,)
ROUNDS = 1
SECONDS = 20.0
WARM_UP_SECONDS = 20.0
RECORDS_PER_S, RECORD_BYTES = 500, 1024
LISTS_PER_S = 5.0
LOGINS_PER_S = 5.0
TOPIC = "orders"
ATTACKER = "cl_attacker"
# Topics of the attacker, whose metadata is the largest answer.
ATTACKED_TOPICS, PARTITIONS = 100, 30
CONTROL = "control"
# What counts as the latency of a request that was never answered.
LOST_MS = 60_000.0
CALM_MS, CALM_LOOK_SECONDS, CALM_SECONDS_MAX = 1_000.0, 2.0, 120.0

Latencies = dict[str, float]


class Stage:
    """What both tenants share, and what each of them has there."""

    def __init__(self, service: Service, web: ControlPlane, folder: Path, pods: Pods) -> None:
        self.service, self.web, self.pods = service, web, pods
        self._pids: dict[str, int] = {}
        attacked = service.add_cluster(ATTACKER, "attacker", idle_timeout_ms=0)
        for cluster_id, topics in ((CLUSTER, 1), (ATTACKER, ATTACKED_TOPICS)):
            store = service.store.cluster(cluster_id)
            store.set_limits(published_limits())
            for number in range(topics):
                name = TOPIC if number == 0 else f"t-{number:03}"
                store.create_topic(name, partitions=PARTITIONS)
        self.place("gateway", service.start_gateway())
        self.place("keeper", service.start_keeper())
        for cluster_id in (CLUSTER, ATTACKER):
            self.wake(cluster_id)
        hostile_key = web.add_tenant(
            "org_attacker", id=ATTACKER, name="attacker", host="attacker", ports=[*attacked.ports]
        )
        operation = web.add_operation("org_attacker", ATTACKER)
        web.add_tenant(id=CLUSTER, name="bench", host="bench", ports=[service.port])
        web.start_web()
        self.place("web", web.pid)
        bomb = folder / "bomb"
        bomb.write_bytes(next(b for b in BOMBS if b.codec == "zstd").batch())
        self.target = hostile.Target(
            kafka=f"127.0.0.1:{attacked.ports[0]}",
            user=USER,
            password=PASSWORD,
            web=web.port,
            key=hostile_key,
            cluster=ATTACKER,
            topic=TOPIC,
            bomb=str(bomb),
            operation=operation,
        )

    def wake(self, cluster_id: str) -> None:
        """Wakes a cluster, and places its broker."""
        self.service.store.request_wake(cluster_id, requested_at_ms=0, by="bench")
        (broker,) = self.service.wait_for(["running"], cluster_id).brokers
        assert broker.pid is not None
        self.place(BROKER, broker.pid, cluster_id)

    def place(self, program: str, pid: int, name: str = "") -> None:
        """Gives a process what its pod has, and counts what it uses."""
        self.pods.place(program, pid, name)
        self._pids[name or program] = pid

    @contextlib.contextmanager
    def counting_cpu(self, counts: dict[str, dict[str, float]], name: str) -> Iterator[None]:
        """Counts what each process uses within the block, in cores, and keeps it under a name."""
        before, began = self._cpu_seconds(), time.monotonic()
        yield
        seconds = time.monotonic() - began
        used = {of: after - before[of] for of, after in self._cpu_seconds().items()}
        counts[name] = {of: round(cpu_seconds / seconds, 4) for of, cpu_seconds in used.items()}

    def _cpu_seconds(self) -> dict[str, float]:
        return {name: proc.usage([pid]).cpu_seconds for name, pid in self._pids.items()}

    def check_processes(self) -> None:
        """Raises `RuntimeError` where a process that tenants share has ended."""
        if not (self.service.is_up() and self.web.is_up()):
            message = f"a shared process has ended, see {self.service.folder} and {self.web.folder}"
            raise RuntimeError(message)


def run(rounds: int | None = None, only: Sequence[str] | None = None, scale: float = 1.0) -> Report:
    """Runs the bench. `scale` shortens each measurement."""
    rounds = rounds or ROUNDS
    chosen(SIDES, only)
    with (
        Pods() as pods,
        contextlib.closing(Service("isolation", idle_timeout_ms=0)) as service,
        tempfile.TemporaryDirectory(dir=work_folder()) as folder,
        ControlPlane("isolation", service.cell) as web,
    ):
        stage = Stage(service, web, Path(folder), pods)
        progress(f"both clusters run, and the web server answers; placed by {pods.placed_by}")
        os.sched_setaffinity(0, {int(GENERATOR_CPU)})
        _measure_victim(stage, WARM_UP_SECONDS * scale)
        return _report([_measure(stage, SECONDS * scale) for _ in range(rounds)])


Measured = dict[str, Latencies]


def _measure(stage: Stage, seconds: float) -> tuple[Measured, dict[str, dict[str, int]]]:
    """The victim's p99 of each kind by attack, `control` among them, and the attackers' answers."""
    controls: dict[str, list[float]] = defaultdict(list)
    measured: Measured = {}
    answers: dict[str, dict[str, int]] = {}
    with HalfCore() as half_core:
        progress(f"attackers and loop are held by {half_core.held_by}")
        for name in hostile.ATTACKS:
            _wait_until_calm(stage)
            with half_core.burning():
                control = _measure_victim(stage, seconds)
            for kind, p99 in control.items():
                controls[kind].append(p99)
            target = json.dumps(asdict(stage.target))
            with half_core.attacking(hostile.__name__, name, target) as answered:
                measured[name] = _measure_victim(stage, seconds)
            answers[name] = answered
            stage.check_processes()
            progress(f"{name}: {measured[name]} over {control}; answered {answered}")
    measured[CONTROL] = {kind: statistics.median(p99s) for kind, p99s in controls.items()}
    return measured, answers


def published_limits() -> ClusterLimits:
    """The limits of a cluster whose organization has none of its own."""
    limits = Limits()
    names = [field.name for field in fields(ClusterLimits)]
    return ClusterLimits(**{name: getattr(limits, name) for name in names})


def _measure_victim(stage: Stage, seconds: float) -> Latencies:
    """The victim's 99th percentiles by kind, in milliseconds; `LOST_MS` where it was refused."""
    logins: list[float] = []
    lists: list[float] = []
    loads = [
        threading.Thread(target=partial(log_in_steadily, stage, seconds, logins)),
        threading.Thread(target=partial(list_steadily, stage, seconds, lists)),
    ]
    for load in loads:
        load.start()
    records = round(RECORDS_PER_S * seconds)
    service = stage.service
    produce_p99_ms = produce_steadily(service, service.bootstrap, records, RECORDS_PER_S)
    for load in loads:
        load.join()
    return {
        "produce_p99_ms": produce_p99_ms,
        "login_p99_ms": percentiles(logins)["p99"],
        "list_p99_ms": percentiles(lists)["p99"],
    }


def _wait_until_calm(stage: Stage) -> None:
    """Waits until what is left of an attack is over, so that it is not in the next control run."""
    deadline = time.monotonic() + CALM_SECONDS_MAX
    while time.monotonic() < deadline:
        if max(_measure_victim(stage, CALM_LOOK_SECONDS).values()) < CALM_MS:
            return
    message = f"the victim's latencies are above {CALM_MS:g} ms without an attack"
    raise RuntimeError(message)


def produce_steadily(service: Service, bootstrap: str, records: int, per_s: int) -> float:
    """Produces records of a tenant at a fixed rate. Returns the p99 in milliseconds.

    It is `LOST_MS` where a record was not acknowledged.
    """
    load = KafkaLoad(bootstrap, TOPIC, records, RECORD_BYTES, service.login, per_s)
    try:
        return run_light(load).p99_ms
    except RuntimeError as error:
        progress(f"a victim could not produce: {str(error)[-200:]}")
        return LOST_MS


def list_steadily(stage: Stage, seconds: float, latencies_ms: list[float]) -> None:
    """Lists topics at a fixed rate by connections of its own."""
    load = Load("list", LISTS_PER_S, seconds, lambda _: _list_request())
    with contextlib.suppress(RuntimeError):
        run_loads(stage.web.port, stage.web.key, [load])
    lost = round(LISTS_PER_S * seconds) - len(load.latencies_ms)
    latencies_ms += [*load.latencies_ms, *[LOST_MS] * lost]


def _list_request() -> Request:
    return Request("GET", f"/api/v1/clusters/{CLUSTER}/topics?limit=50")


def log_in_steadily(stage: Stage, seconds: float, latencies_ms: list[float]) -> None:
    """Logs in by a new connection at a fixed rate, each from when it was due."""
    host, port = stage.service.bootstrap.rsplit(":", 1)
    clock, began = threading.Event(), time.monotonic()
    for number in range(round(LOGINS_PER_S * seconds)):
        due = began + number / LOGINS_PER_S
        clock.wait(max(0.0, due - time.monotonic()))
        latency_ms = LOST_MS
        with (
            contextlib.suppress(OSError, NotServedError),
            socket.create_connection((host, int(port)), hostile.TIMEOUT_S) as connection,
        ):
            if hostile.log_in(connection, USER, PASSWORD) == 0:
                latency_ms = (time.monotonic() - due) * 1000
        latencies_ms.append(latency_ms)


def _report(rounds: Sequence[tuple[Measured, dict[str, dict[str, int]]]]) -> Report:
    kinds = list(rounds[0][0][CONTROL])
    ratios = {
        attack: {
            kind: spread(
                [measured[attack][kind] / measured[CONTROL][kind] for measured, _ in rounds]
            )
            for kind in kinds
        }
        for attack in hostile.ATTACKS
    }
    return Report(
        bench="isolation",
        value=max(ratio["median"] for by_kind in ratios.values() for ratio in by_kind.values()),
        unit="ratio",
        peer=None,
        details={
            "rounds": len(rounds),
            "p99_ms": [measured for measured, _ in rounds],
            "p99_over_control": ratios,
            "attackers_answered": [answers for _, answers in rounds],
        },
    )

"""A cell of many clusters: a real API server, the real keeper, etcd, and pods without brokers."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from brokers.etcd import Etcd
from brokers.locations import EtcdLocation, metadata_location
from brokers.metadata import Acl, CellStore, ClusterSpec, ClusterStatus
from brokers.secrets import create_cell_secret
from tests.bench import proc
from tests.bench.report import progress
from tests.bench.service import start_part, wait_until_ready
from tests.bench.sides import WORK
from tests.etcd import EtcdServer, running_etcd
from tests.kubernetes.client import Client
from tests.kubernetes.control_plane import Request, Servers, writes
from tests.kubernetes.pods.cluster import Disposable
from tests.peer.jars import ROOT
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports

TOOLS = ROOT / ".tools" / "bin"
# Fewer than a node has room for: a pod that ends and the next one are there together.
PODS_A_NODE = 55
# What a small tenant has.
TOPICS, PARTITIONS = 5, 6
IDLE_MS = 300_000
# As the control plane puts a cluster to sleep.
SLEEP_SOON_MS = 1_000
# If no cluster's phase changes for so long, the keeper is stuck.
STUCK_S = 180.0
REPORT_EVERY_S = 5.0


class SimulatedCell:
    """From `with` to its end: Kubernetes, nodes, etcd; clusters that nobody ever asked to run."""

    def __init__(self, name: str, clusters: int, **keeper_settings: object) -> None:
        self._keeper_settings = keeper_settings
        self.folder = WORK / name
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ("dfs", "bucket", "keeper", "etcd"):
            (self.folder / part).mkdir(parents=True)
        self.specs = [_spec(number) for number in range(clusters)]
        self.nodes = max(3, math.ceil(clusters / PODS_A_NODE))
        self.kubernetes = Disposable(self.folder / "kubernetes", Servers(TOOLS))
        self.keeper: subprocess.Popen[bytes] | None = None
        # How often the keeper ended by itself.
        self.keepers_ended = 0
        self._metrics_port, self._kafka_port = free_ports(2)
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Starts all parts; whatever happens, nothing of them is left at the end."""
        with self._stack:
            self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._stack.callback(self.kubernetes.stop)
            self.kubernetes.start()
            progress("Kubernetes runs")
            self._stack.callback(lambda: stop_servers(list(self._servers.values())))
            self._secret = create_cell_secret(self.folder / "secret")
            self._start_nodes()
            self._etcd: EtcdServer = self._stack.enter_context(running_etcd(self.folder / "etcd"))
            self.metadata = self._etcd.location("cell")
            self.store = CellStore(self.metadata)
            self._make_clusters()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def cell(self) -> dict[str, str]:
        """The cell's settings, as a control plane takes them."""
        return {
            "metadata": self.metadata,
            "dfs": str(self.folder / "dfs"),
            "bucket": f"file://{self.folder / 'bucket'}",
            "secret": str(self.folder / "secret"),
        }

    @property
    def keeper_config(self) -> Path:
        """The settings that the keeper was started with."""
        return self.folder / "keeper.toml"

    def start_keeper(self) -> None:
        """Starts the keeper, with the settings that it comes with but for what is given here."""
        settings: dict[str, Mapping[str, object]] = {
            "cell": self.cell | {"bucket": str(self.folder / "bucket")},
            "keeper": {"folder": str(self.folder / "keeper"), **self._keeper_settings},
            "driver": {
                "kind": "kubernetes",
                "kubeconfig": str(self.kubernetes.kubeconfig("keeper")),
                "cell": "bench",
                "image": "freshet:bench",
                "dfs": {"hostPath": {"path": f"{self.folder}/dfs/{{cluster}}"}},
                "metrics_port": self._metrics_port,
                "kafka_port": self._kafka_port,
            },
        }
        self.keeper = start_part(self.folder, "provisioning.cell.keeper", settings, "keeper")
        self._servers["keeper"] = self.keeper

    def stop_keeper(self) -> None:
        """Ends it in order; pods stay."""
        stop_servers([self._servers.pop("keeper")])

    def revive(self) -> None:
        """Starts the keeper anew where it ended by itself, as Kubernetes does with its pod."""
        if self.keeper is None or self.keeper.poll() is None:
            return
        self.keepers_ended += 1
        log = self.folder / "keeper.log"
        *_, last = [line for line in log.read_text(errors="replace").splitlines() if line] or [""]
        progress(f"the keeper ended, and is started again: {last}")
        log.rename(self.folder / f"keeper-{self.keepers_ended}.log")
        self.start_keeper()

    def rest(self, seconds: float) -> None:
        """Lets time pass."""
        assert self.keeper is not None
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.keeper.wait(left)
            self.revive()

    def keeper_counts(self) -> dict[str, int]:
        """What the last keeper counted: looks at brokers and samples, and those that failed."""
        log = (self.folder / "keeper.log").read_text()
        (address,) = re.findall(r"^ready metrics=(\S+)", log, re.MULTILINE)
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
            counts = re.findall(r"^freshet_keeper_(\w+)_total (\S+)", answer.read().decode(), re.M)
        return {name: int(float(count)) for name, count in counts}

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time of each process so far; of the keeper, since it was last started."""
        assert self._etcd.process is not None
        pids = {f"kubernetes-{name}": pid for name, pid in self.kubernetes.pids.items()}
        pids |= {name: server.pid for name, server in self._servers.items()}
        pids["metadata-etcd"] = self._etcd.process.pid
        return {name: proc.usage([pid]).cpu_seconds for name, pid in pids.items()}

    def ask_to_wake(self, generation: int) -> None:
        """Asks all clusters to wake, as the control plane does it."""
        for spec in self.specs:
            self.store.put_spec(replace(spec, generation=generation))
            self.store.request_wake(
                spec.id, requested_at_ms=time.time_ns() // 1_000_000, by="bench"
            )

    def ask_to_sleep(self, generation: int) -> None:
        """Asks all clusters to sleep, as the control plane does it."""
        for spec in self.specs:
            self.store.put_spec(replace(spec, generation=generation, idle_timeout_ms=SLEEP_SOON_MS))

    def stage(self, name: str, ask: Callable[[], None], phase: str) -> dict[str, Any]:
        """Asks something of all clusters; returns what it took until all are in a phase."""
        cpu, began = self.cpu_seconds(), time.monotonic()
        with self.kubernetes.recorded() as requests:
            ask()
            asked_s = time.monotonic() - began
            progress(f"{name}: all asked for")
            self._wait_for(name, phase)
            seconds = time.monotonic() - began
        used = {key: round(now - cpu.get(key, 0.0), 1) for key, now in self.cpu_seconds().items()}
        progress(f"{name}: {seconds:.1f} s, {len(requests)} requests, {used} CPU seconds")
        return {
            "seconds": round(seconds, 1),
            # Of these, the bench itself wrote so long.
            "asking_seconds": round(asked_s, 1),
            **counts(requests),
            "cpu_seconds": used,
        }

    def metadata_mib(self) -> dict[str, float]:
        """MiB that etcd has on disk: with its history, and after compaction without."""
        location = metadata_location(self.metadata)
        assert isinstance(location, EtcdLocation)
        etcd = Etcd(location)
        status = etcd.call("maintenance/status", {})
        with_history = int(status["dbSize"])
        etcd.call("kv/compaction", {"revision": status["header"]["revision"], "physical": True})
        etcd.call("maintenance/defragment", {})
        alone = int(etcd.call("maintenance/status", {})["dbSize"])
        etcd.close()
        return {"with_history": _mib(with_history), "compacted": _mib(alone)}

    def _start_nodes(self) -> None:
        admin = Client(self.kubernetes.kubeconfig("admin"))
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "freshet-system"}}
        admin.ask("POST", "/api/v1/namespaces", space)
        admin.close()
        log = self.folder / "nodes.log"
        command = [
            *(sys.executable, "-m", "tests.bench.stand_in_brokers"),
            *(str(self.kubernetes.kubeconfig("stand-in-kubelet")), str(self.nodes)),
            *(str(self.folder / "secret"), str(self._metrics_port), str(self._kafka_port)),
        ]
        self._servers["nodes"] = spawn_server(command, log, cwd=ROOT)
        wait_until_ready(self._servers["nodes"], log)
        progress(f"{self.nodes} nodes")

    def _make_clusters(self) -> None:
        acls = [
            Acl(resource_type=kind, resource_name=name, principal="User:bench", operation="ALL")
            for kind, name in [("TOPIC", "*"), ("GROUP", "*"), ("CLUSTER", "kafka-cluster")]
        ]
        for number, spec in enumerate(self.specs):
            cluster = self.store.cluster(spec.id)
            cluster.create()
            cluster.set_user("bench", "bench-password")
            cluster.add_acls(acls)
            for topic in range(TOPICS):
                cluster.create_topic(f"topic-{topic}", partitions=PARTITIONS)
            if number % 100 == 99:
                progress(f"{number + 1} clusters with topics, a user and ACLs")

    def _wait_for(self, name: str, phase: str) -> None:
        """Waits until all clusters are in a phase; raises `RuntimeError` if nothing moves."""
        statuses = self.store.statuses()
        phases: dict[str, str] = {
            cluster_id: status.phase for cluster_id, status in statuses.items()
        }
        revision = statuses.revision
        reported_at = moved = time.monotonic()
        while True:
            count = Counter(phases.values())
            if count[phase] == len(self.specs):
                return
            self.revive()
            self._check(moved, f"{name}: {dict(count)}")
            if time.monotonic() - reported_at > REPORT_EVERY_S:
                reported_at = time.monotonic()
                progress(f"{name}: {dict(count)} of {len(self.specs)}")
            for change in self.store.watch("status/", revision, 1.0):
                revision = change.revision
                if isinstance(change.record, ClusterStatus):
                    if phases.get(change.cluster_id) != change.record.phase:
                        moved = time.monotonic()
                    phases[change.cluster_id] = change.record.phase

    def _check(self, moved: float, where: str) -> None:
        ended = [name for name, server in self._servers.items() if server.poll() is not None]
        if ended or time.monotonic() - moved > STUCK_S:
            log = self.folder / f"{(ended or ['keeper'])[0]}.log"
            message = f"{where}, {ended} ended:\n{log.read_text(errors='replace')[-4000:]}"
            raise RuntimeError(message)


def counts(requests: list[Request]) -> dict[str, Any]:
    """How many requests there were, of what kinds, and which of them were refused."""
    kinds = Counter(f"{request.verb} {request.resource}" for request in requests)
    failed = Counter(str(request.status) for request in requests if request.status >= 400)
    return {
        "requests": len(requests),
        "writes": len(writes(requests)),
        "by_kind": dict(kinds.most_common()),
        "refused": dict(failed),
    }


def _spec(number: int) -> ClusterSpec:
    return ClusterSpec(
        id=f"cl_simulated{number:05}",
        name=f"simulated-{number}",
        organization_id="org_bench",
        generation=1,
        state="active",
        scale=1,
        idle_timeout_ms=IDLE_MS,
        ports=(32_768 + number,),
        host=f"simulated-{number}",
        connections_max=1000,
        wakes_per_minute_max=100,
    )


def _mib(size: int) -> float:
    return round(size / 2**20, 1)

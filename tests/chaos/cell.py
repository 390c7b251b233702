"""A cell that is hurt: etcd, a keeper, two gateways, and a cluster of three brokers.

The keeper starts the brokers, as in the service. All of it lives in one folder, in a network
namespace and a process namespace of its own (`__main__.py`), so that nothing outlives a run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import urllib3

from brokers.metadata import Acl, CellStore, ClusterSpec
from brokers.secrets import create_cell_secret
from brokers.settings.writing import overrides_of
from provisioning.cell.drivers.files import SlotFiles
from provisioning.cell.drivers.process import Identity, identify_process
from tests.bench.service import wait_until_ready
from tests.brokers.lanes import FENCED
from tests.chaos.network import FOLDER_VARIABLE, Clocks, Network, compile_shim
from tests.etcd import EtcdServer
from tests.faulty.mount import FaultyFolder
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports
from tests.supervisor.run import wait_until

CLUSTER = "cl_chaos"
SLOTS = 3
GATEWAYS = ("127.0.0.1", "127.0.0.2")
USER, PASSWORD = "chaos", "chaos-password"
ROOT = Path(__file__).parents[2]
METADATA_ROOT = "cell"
# Files are ended and split often, so that faults hit all of that too.
BROKER_SETTINGS: Mapping[str, Mapping[str, object]] = {
    "lane": {"file_bytes_first": 65536, "file_bytes_max": 1 << 20, "roll_after_ms": 2000},
    "topics": {"offsets_partitions": 4},
    "groups": {"initial_rebalance_delay_ms": 0},
    "threads": {"runtime": 2},
}


@dataclass(frozen=True)
class Place:
    """A broker that runs, by what it wrote into the cluster's metadata."""

    slot: int
    incarnation: int
    pid: int
    # Of its listener for the other brokers.
    port: int


class Part:
    """A process that is started again, with a log of its own, the moment it ends."""

    def __init__(
        self, folder: Path, name: str, command: Sequence[str | Path], environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.starts = 0
        self._folder, self._command, self._environment = folder, list(command), environment
        self._leaving = False
        self._ready = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep_running, name=name, daemon=True)
        self._thread.start()

    def _keep_running(self) -> None:
        while not self._leaving:
            self.starts += 1
            log = self._folder / f"{self.name}-{self.starts}.log"
            self._process = spawn_server(
                [sys.executable, "-m", *self._command],
                log,
                cwd=ROOT,
                environment=self._environment,
            )
            try:
                wait_until_ready(self._process, log)
            except RuntimeError:
                continue  # it ended before it was ready, as when its lease is still another's
            self._ready.set()
            self._process.wait()
            self._ready.clear()

    @property
    def is_ready(self) -> bool:
        """Whether it runs and has said that it is ready."""
        return self._ready.is_set()

    def kill(self) -> None:
        """Ends it with SIGKILL; it is started again."""
        assert self._process is not None
        self._ready.clear()
        self._process.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it in order and for good."""
        self._leaving = True
        if self._process is not None:
            stop_servers([self._process])
        self._thread.join()


class HurtCell:
    """The cell of the module's page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("etcd", "keeper", "bucket", "clocks", "logs"):
            (folder / name).mkdir(parents=True)
        self.disk = FaultyFolder(folder / "dfs", folder / "behind")
        self.clocks = Clocks(folder / "clocks")
        self.network = Network()
        self._shim = compile_shim(folder)
        etcd_port, peer_port, self._port, *slot_ports = free_ports(3 + SLOTS)
        self.etcd = EtcdServer(folder=folder / "etcd", port=etcd_port, peer_port=peer_port)
        self._ports = (self._port, *slot_ports)
        self.metadata = self.etcd.location(METADATA_ROOT)
        self.store = CellStore(self.metadata)
        self.gateways: list[Part] = []
        self.keeper: Part | None = None

    def start(self) -> None:
        """Starts all of it; returns once each broker serves."""
        self.disk.__enter__()
        self.etcd.start()
        secret = self.folder / "secret"
        create_cell_secret(secret)
        self._add_cluster()
        cell = {"metadata": self.metadata, "secret": secret}
        keeper: dict[str, Mapping[str, object]] = {
            "cell": {**cell, "dfs": self.disk.path, "bucket": f"file://{self.folder / 'bucket'}"},
            "keeper": {
                "folder": self.folder / "keeper",
                "stop_brokers_on_exit": True,
                "lease_ttl_s": 5,
                "scrape_interval_ms": 500,
            },
        }
        keeper |= {f"broker.{name}": values for name, values in BROKER_SETTINGS.items()}
        preload = {"LD_PRELOAD": str(self._shim), FOLDER_VARIABLE: str(self.clocks.folder)}
        self.keeper = self._start("keeper", ["provisioning.cell.keeper"], keeper, preload)
        for number, host in enumerate(GATEWAYS):
            settings: dict[str, Mapping[str, object]] = {
                "cell": cell,
                "listener": {"plain": host},
            }
            self.gateways.append(
                self._start(f"gateway{number}", ["brokers", "gateway"], settings, {})
            )
        self.wait_whole()

    def _start(
        self,
        name: str,
        command: Sequence[str],
        settings: Mapping[str, Mapping[str, object]],
        environment: Mapping[str, str],
    ) -> Part:
        config = self.folder / f"{name}.toml"
        config.write_text("\n".join(overrides_of(settings)) + "\n")
        return Part(self.folder / "logs", name, [*command, "--config", config], environment)

    def _add_cluster(self) -> None:
        cluster = self.store.cluster(CLUSTER)
        cluster.create(scale=SLOTS)
        cluster.set_user(USER, PASSWORD)
        cluster.add_acls(
            Acl(resource_type=kind, resource_name=name, principal=f"User:{USER}", operation="ALL")
            for kind, name in [("TOPIC", "*"), ("GROUP", "*"), ("CLUSTER", "kafka-cluster")]
        )
        spec = ClusterSpec(
            id=CLUSTER,
            name="chaos",
            organization_id="org_chaos",
            generation=1,
            state="active",
            scale=SLOTS,
            idle_timeout_ms=0,
            ports=self._ports,
            host="chaos",
            connections_max=1000,
            wakes_per_minute_max=100_000,
        )
        self.store.put_spec(spec)

    @property
    def bootstrap(self) -> str:
        """The cluster's addresses at the gateways."""
        return ",".join(f"{host}:{self._port}" for host in GATEWAYS)

    def identity(self, slot: int) -> Identity | None:
        """The process of a slot's broker; None while it has none."""
        identity = SlotFiles.of(self.folder / "keeper" / "run", CLUSTER, slot).read_state()
        return identity if identity and identify_process(identity.pid) == identity else None

    def incarnations(self) -> dict[int, dict[str, object]]:
        """The records of all incarnations, by their numbers. Raises where etcd does not answer."""
        records = self.etcd.records(METADATA_ROOT, CLUSTER)
        return {
            int(key.rpartition("/")[2]): record
            for key, record in sorted(records.items())
            if key.startswith("incarnation/")
        }

    def places(self) -> dict[int, Place]:
        """The broker of each slot that has one which was not ended."""
        places = {}
        for incarnation, record in self.incarnations().items():
            slot, place = int(str(record.get("slot", 0))), record.get("place")
            identity = self.identity(slot)
            if record["state"] != "live" or identity is None or not isinstance(place, dict):
                continue
            port = int(str(place["address"]).rpartition(":")[2])
            places[slot] = Place(slot, incarnation, identity.pid, port)
        return places

    def controller(self) -> int:
        """The incarnation that is the controller."""
        return int(self.etcd.records(METADATA_ROOT, CLUSTER)["term"]["incarnation"])

    def lane_folder(self, incarnation: int) -> str:
        """The folder of a lane within the mount."""
        return f"{CLUSTER}/lanes/{incarnation:020}"

    def is_whole(self) -> bool:
        """Whether each slot has a broker that serves, and keeper and gateways run."""
        parts = [*self.gateways, self.keeper]
        return all(part is not None and part.is_ready for part in parts) and all(
            self._serves(slot) for slot in range(SLOTS)
        )

    def _serves(self, slot: int) -> bool:
        files = SlotFiles.of(self.folder / "keeper" / "run", CLUSTER, slot)
        return self.identity(slot) is not None and files.read_endpoints() is not None

    def wait_whole(self, timeout_s: float = 120) -> None:
        """Waits until the cell is whole."""
        wait_until(self.is_whole, "each slot has a broker, keeper and gateways run", timeout_s)

    def stop(self) -> None:
        """Ends keeper, brokers and gateways in order; etcd and the disk go on."""
        for part in [*self.gateways, self.keeper]:
            if part is not None:
                part.stop()
        wait_until(
            lambda: all(self.identity(slot) is None for slot in range(SLOTS)),
            "all brokers have ended",
        )

    def close(self) -> None:
        """Ends what is left; the data stays."""
        for part in [*self.gateways, self.keeper]:
            if part is not None:
                part.stop()
        for slot in range(SLOTS):
            identity = self.identity(slot)
            if identity is not None:
                os.kill(identity.pid, signal.SIGKILL)
        if self.etcd.process is not None:
            self.etcd.stop(signal.SIGKILL)
        self.disk.__exit__(None, None, None)


class FenceWatch:
    """Notes when which broker was ended by others, from the cluster's records."""

    def __init__(self, cell: HurtCell) -> None:
        self._cell = cell
        self._leaving = threading.Event()
        # Each with its moment, the slot and the incarnation.
        self.fences: list[tuple[float, int, int]] = []
        self._known: set[int] = set()
        self._thread = threading.Thread(target=self._watch, name="fences", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._leaving.wait(0.1):
            try:
                records = self._cell.incarnations()
            except (urllib3.exceptions.HTTPError, AssertionError):
                continue  # etcd is down
            now = time.monotonic()
            for incarnation, record in records.items():
                if record["state"] in FENCED and incarnation not in self._known:
                    self._known.add(incarnation)
                    self.fences.append((now, int(str(record.get("slot", 0))), incarnation))

    def stop(self) -> None:
        """Ends the watch."""
        self._leaving.set()
        self._thread.join()

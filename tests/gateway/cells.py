"""A cell as a gateway sees it: clusters, users, and a stand-in for the keeper."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers.metadata import Acl, BrokerStatus, CellStore, ClusterSpec, ClusterStatus
from brokers.secrets import create_cell_secret, link_secret
from brokers.settings.writing import overrides_of
from tests.clients.servers import BrokerServer
from tests.peer.processes import bound_command, stop_servers
from tests.ports import free_ports

ROOT = Path(__file__).parents[2]
DOMAIN = "kafka.localhost"
USER, PASSWORD = "alice", "s3cret"
# Never reached when all is well.
LIMIT_S = 120.0


def until(condition: Callable[[], object], what: str) -> None:
    """Waits until something holds."""
    clock = threading.Event()
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        clock.wait(0.01)


class Cell:
    """A cell in a folder: metadata, storage and secret."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.metadata = str(folder / "metadata.sqlite")
        self.store = CellStore(self.metadata)
        self.secret = create_cell_secret(folder / "secret")

    def add_cluster(self, cluster_id: str, **changes: object) -> ClusterSpec:
        """Adds a cluster that is asleep, with one user who may do everything; returns its spec."""
        spec: dict[str, object] = {
            "id": cluster_id,
            "name": cluster_id,
            "organization_id": "org_1",
            "generation": 1,
            "state": "active",
            "scale": 1,
            "idle_timeout_ms": 600_000,
            "ports": tuple(free_ports(1)),
            "host": cluster_id.replace("_", "-"),
            "connections_max": 100,
            "wakes_per_minute_max": 60,
        }
        made = ClusterSpec(**{**spec, **changes})  # type: ignore[arg-type]
        cluster = self.store.cluster(cluster_id)
        cluster.create()
        self.add_user(cluster_id, USER, PASSWORD)
        cluster.add_acls(
            Acl(resource_type=kind, resource_name=name, principal=f"User:{USER}", operation="ALL")
            for kind, name in [("TOPIC", "*"), ("GROUP", "*"), ("CLUSTER", "kafka-cluster")]
        )
        self.store.put_spec(made)
        return made

    def add_user(self, cluster_id: str, user: str, password: str) -> None:
        """A user with a password for both mechanisms."""
        cluster = self.store.cluster(cluster_id)
        cluster.set_user(user, password, ("SCRAM-SHA-256", "SCRAM-SHA-512"))

    def broker(self, cluster_id: str, **sections: Mapping[str, object]) -> BrokerServer:
        """A broker of a cluster, as the keeper would start it. More settings by section."""
        (link,) = free_ports(1)
        return BrokerServer(
            self.folder / cluster_id,
            storage={
                "dfs": self.folder / "dfs",
                "bucket": self.folder / "bucket",
                "metadata": self.folder / "metadata.sqlite",
                "cluster": cluster_id,
            },
            listener={
                "link": f"127.0.0.1:{link}",
                "link_secret": link_secret(self.secret, cluster_id),
                **sections.pop("listener", {}),
            },
            security={"allow_everyone_if_no_acl_found": False, **sections.pop("security", {})},
            lane={"roll_after_ms": 500},
            **sections,
        )


class KeeperStandIn:
    """Starts the broker of one cluster once it is asked to, and again whenever it ends."""

    def __init__(self, cell: Cell, spec: ClusterSpec, **sections: Mapping[str, object]) -> None:
        self.cell = cell
        self.spec = spec
        self.broker = cell.broker(spec.id, **sections)
        self.link = _setting(self.broker, "listener.link")
        self.starts = 0
        self.asked_by = ""
        self.failure: BaseException | None = None
        self._leaving = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def _keep(self) -> None:
        try:
            self._wait_for_wake()
            while not self._leaving.is_set():
                self._start()
                self.broker.wait()
        except BaseException as error:  # handed to whoever waits
            self.failure = error
        with self._changed:
            self._changed.notify_all()

    def _wait_for_wake(self) -> None:
        revision = 0
        while not self._leaving.is_set():
            wakes = self.cell.store.wakes()
            if self.spec.id in wakes:
                return
            revision = wakes.revision
            self.cell.store.watch("wake/", revision, 0.5)

    def _start(self) -> None:
        if self._leaving.is_set():
            return
        self.broker.start()
        self._say("running")
        wake = self.cell.store.wake(self.spec.id)
        if wake is not None:
            self.asked_by = wake.by
            self.cell.store.remove_wake(self.spec.id, wake.revision)
        with self._changed:
            self.starts += 1
            self._changed.notify_all()

    def _say(self, phase: str) -> None:
        brokers = (
            BrokerStatus(
                slot=0,
                link=self.link,
                kafka=self.broker.bootstrap,
                metrics=self.broker.metrics_address,
            ),
        )
        status = ClusterStatus(
            observed_generation=self.spec.generation,
            phase=phase,  # type: ignore[arg-type]
            since_ms=time.time_ns() // 1_000_000,
            brokers=brokers,
        )
        self.cell.store.put_status(self.spec.id, status)

    def wait_for_start(self, number: int) -> None:
        """Waits until the broker was started so many times."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: self.starts >= number or self.failure is not None, LIMIT_S
            )
        if self.failure is not None:
            raise self.failure
        assert done, "the broker was not started"

    def kill(self) -> None:
        """Kills the broker without warning; returns once its successor serves."""
        due = self.starts + 1
        assert self.broker.process is not None
        self.broker.process.kill()
        self.wait_for_start(due)

    def __enter__(self) -> Self:
        """Begins to wait for a wake."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kills the broker for good."""
        self._leaving.set()
        if self.broker.process is not None:
            self.broker.process.kill()
        self._thread.join()


def _setting(broker: BrokerServer, key: str) -> str:
    lines = broker.config.read_text().splitlines()
    (value,) = [line.split(" = ", 1)[1] for line in lines if line.startswith(f"{key} = ")]
    return value.strip('"')


class GatewayServer:
    """`python -m brokers gateway`, which cannot outlive the test. Settings by section."""

    def __init__(self, cell: Cell, **sections: Mapping[str, object]) -> None:
        self.folder = cell.folder / "gateway"
        self.folder.mkdir(exist_ok=True)
        given: dict[str, Mapping[str, object]] = {
            "cell": {"metadata": cell.metadata, "secret": cell.folder / "secret"},
            "listener": {"tls": "127.0.0.1:0", "domain": DOMAIN},
            "tls": {"folder": self.folder},
        }
        lines = [line for layer in (given, sections) for line in overrides_of(layer)]
        unique = dict(line.split("=", 1) for line in lines)
        self.config = self.folder / "gateway.toml"
        self.config.write_text("".join(f"{key} = {value}\n" for key, value in unique.items()))
        self.log = self.folder / "gateway.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.ready: dict[str, str] = {}

    def start(self) -> None:
        """Starts it and waits until it says that it serves."""
        command = [sys.executable, "-m", "brokers", "gateway", "--config", str(self.config)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                bound_command(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line.startswith("ready "):
            self.process.wait()
            self.process.stdout.close()
            tail = self.log.read_text(errors="replace")[-4000:]
            message = f"the gateway did not start ({self.process.returncode}):\n{tail}"
            raise AssertionError(message)
        self.ready = dict(pair.split("=", 1) for pair in line.split()[1:])

    @property
    def tls_port(self) -> int:
        """The port of the listener with TLS."""
        return int(self.ready["tls"].rpartition(":")[2])

    @property
    def authority(self) -> Path:
        """The authority that clients trust."""
        return self.folder / "ca.pem"

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal and waits until it is gone."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(LIMIT_S)

    def stop(self) -> int:
        """Ends it with SIGTERM, where it runs; returns its status."""
        assert self.process is not None
        stop_servers([self.process])
        if self.process.stdout is not None:
            self.process.stdout.close()
        return self.process.returncode

    def __enter__(self) -> Self:
        """Starts it."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends it."""
        self.stop()

"""A cell of release builds on the brokers' CPU: metadata, secret, one cluster, keeper, gateway."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from brokers.metadata import Acl, CellStore, ClusterSpec, ClusterStatus
from brokers.secrets import create_cell_secret
from brokers.settings.writing import overrides_of
from tests.bench.sides import BROKER_CPU, FRESHET_PYTHON, WORK
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports

CLUSTER = "cl_bench"
USER, PASSWORD = "bench", "bench-password"
# Seconds; nothing is ever as slow as this.
LIMIT_S = 120.0


class Service:
    """The cell of the module's page. Its cluster sleeps until a client wakes it."""

    def __init__(
        self,
        name: str,
        *,
        idle_timeout_ms: int,
        scale: int = 1,
        metadata: str = "",
        driver: Mapping[str, object] | None = None,
    ) -> None:
        """`metadata` is by default a file; `driver` what runs brokers, by default this machine."""
        self.folder = WORK / name
        self.metadata = metadata or str(self.folder / "metadata.sqlite")
        self.driver = driver or {}
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ("dfs", "bucket", "keeper", "gateway"):
            (self.folder / part).mkdir(parents=True)
        self.secret = create_cell_secret(self.folder / "secret")
        self.store = CellStore(self.metadata)
        self.spec = self.add_cluster(CLUSTER, "bench", idle_timeout_ms=idle_timeout_ms, scale=scale)
        self.port = self.spec.ports[0]
        self._servers: list[subprocess.Popen[bytes]] = []

    def add_cluster(
        self, cluster_id: str, name: str, *, idle_timeout_ms: int, scale: int = 1
    ) -> ClusterSpec:
        """Adds a cluster with a user who may do everything; it sleeps until a client wakes it."""
        spec = ClusterSpec(
            id=cluster_id,
            name=name,
            organization_id=f"org_{name}",
            generation=1,
            state="active",
            scale=scale,
            idle_timeout_ms=idle_timeout_ms,
            # The first is that of all brokers; several have one each besides.
            ports=tuple(free_ports(1 if scale == 1 else 1 + scale)),
            host=name,
            connections_max=1000,
            # The limit is not what is measured.
            wakes_per_minute_max=100_000,
        )
        cluster = self.store.cluster(cluster_id)
        cluster.create(scale=scale)
        cluster.set_user(USER, PASSWORD)
        everything = [("TOPIC", "*"), ("GROUP", "*"), ("CLUSTER", "kafka-cluster")]
        cluster.add_acls(
            Acl(resource_type=kind, resource_name=of, principal=f"User:{USER}", operation="ALL")
            for kind, of in everything
        )
        self.store.put_spec(spec)
        return spec

    @property
    def bootstrap(self) -> str:
        """The cluster's address at the gateway."""
        return f"127.0.0.1:{self.port}"

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
    def login(self) -> dict[str, object]:
        """The settings with which librdkafka logs in."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }

    def start_keeper(self) -> int:
        """Starts the keeper, which starts the broker when a client comes; gives its process id."""
        settings: dict[str, Mapping[str, object]] = {
            "cell": {name: self.folder / name for name in ("dfs", "bucket", "secret")}
            | {"metadata": self.metadata},
            "keeper": {
                "folder": self.folder / "keeper",
                "stop_brokers_on_exit": True,
                "scrape_interval_ms": 100,
            },
            "driver": self.driver,
        }
        return self._start("provisioning.cell.keeper", settings, "keeper")

    def start_gateway(self) -> int:
        """Starts the gateway; gives its process id."""
        settings: dict[str, Mapping[str, object]] = {
            "cell": {
                "metadata": self.metadata,
                "secret": self.folder / "secret",
            },
        }
        return self._start("brokers", settings, "gateway", "gateway")

    def _start(
        self, module: str, settings: Mapping[str, Mapping[str, object]], name: str, *command: str
    ) -> int:
        server = start_part(self.folder, module, settings, name, *command, cpus=BROKER_CPU)
        self._servers.append(server)
        return server.pid

    def wait_for(self, phases: Sequence[str], cluster_id: str = CLUSTER) -> ClusterStatus:
        """Waits until a cluster is in one of these phases; gives its status."""
        deadline = time.monotonic() + LIMIT_S
        revision = 0
        while time.monotonic() < deadline:
            statuses = self.store.statuses()
            status = statuses.get(cluster_id)
            if status is not None and status.phase in phases:
                return status
            revision = statuses.revision
            self.store.watch("status/", revision, 1.0)
        message = f"the cluster is never {' or '.join(phases)}"
        raise RuntimeError(message)

    def is_up(self) -> bool:
        """Whether every process that was started runs."""
        return all(server.poll() is None for server in self._servers)

    def stop(self) -> None:
        """Ends all of it, brokers too; its data stays."""
        stop_servers(self._servers)
        self._servers.clear()

    def close(self) -> None:
        """Ends all of it and removes its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_part(
    folder: Path,
    module: str,
    settings: Mapping[str, Mapping[str, object]],
    name: str,
    *command: str,
    cpus: str | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a part of the service, of the release build, and returns when it says `ready`."""
    config = folder / f"{name}.toml"
    config.write_text("\n".join(overrides_of(settings)) + "\n")
    server = spawn_server(
        [FRESHET_PYTHON, "-P", "-m", module, *command, "--config", config],
        folder / f"{name}.log",
        cpus=cpus,
        cwd=folder,
        # Packages that the release environment lacks: the keeper is a Kafka client.
        environment={"PYTHONPATH": sysconfig.get_paths()["purelib"]},
    )
    wait_until_ready(server, folder / f"{name}.log")
    return server


def wait_until_ready(server: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when a server's log has a line that begins with `ready`.

    Raises `RuntimeError` with the log's end where the server ended.
    """
    clock = threading.Event()
    while not log.read_text().startswith("ready") and "\nready" not in log.read_text():
        if server.poll() is not None:
            message = f"{log.stem} did not start:\n{log.read_text()[-4000:]}"
            raise RuntimeError(message)
        clock.wait(0.01)

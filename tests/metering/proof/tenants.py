"""Cells with several tenants: one cluster each, its clients counted, its brokers hurt.

Here brokers run directly, as the keeper would start them, so that a kill hits at a known moment;
`kept.py` has clusters as the service runs them. Every client comes through a proxy of the tenant,
and brokers give away no other address.
"""

from __future__ import annotations

import abc
import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka.admin import AdminClient, NewTopic

from brokers.metadata import Acl, CellStore, ClusterSpec, ClusterStore
from brokers.secrets import SUPER_USER
from provisioning.kafka import Connection
from tests.brokers.logscan import LogScan, read_metadata
from tests.clients.servers import BrokerServer, Supervisor
from tests.metering.proof.counting_proxy import CountingProxy, Seen, unix_ms
from tests.ports import free_ports

CELL = "local"
PASSWORD = "a-password-of-the-load"
USERS = ("writer-1", "writer-2", "reader-1", "reader-2")
# Files are ended and split often, so that faults hit all of that too.
LANE: Mapping[str, object] = {
    "file_bytes_first": 65536,
    "file_bytes_max": 4 << 20,
    "roll_after_ms": 2000,
}


@dataclass(frozen=True)
class Strike:
    """A broker ended without a last count, or paused. `ports`: of the proxies that lead to it."""

    at_ms: int
    ports: frozenset[int]


@dataclass
class Tenant:
    """A cluster of an organization of its own."""

    number: int
    seen: Seen = field(default_factory=Seen)
    """What went through its proxies."""
    topics: dict[str, str] = field(default_factory=dict)
    """Ids (32 hex digits) by name."""
    strikes: list[Strike] = field(default_factory=list)

    @property
    def cluster_id(self) -> str:
        """Its cluster."""
        return f"cl_tenant{self.number}"

    @property
    def organization_id(self) -> str:
        """Who pays."""
        return f"org_tenant{self.number}"

    @property
    def bootstrap(self) -> str:
        """Where its clients connect."""
        raise NotImplementedError

    def service(self) -> Connection:
        """How the service itself connects now."""
        raise NotImplementedError

    def pids(self) -> Mapping[int, int]:
        """The processes of its brokers that run now, by slot."""
        raise NotImplementedError

    def kill(self) -> None:
        """kill -9 of a broker; returns once the cluster is whole again."""
        raise NotImplementedError

    def struck(self) -> Mapping[str, int]:
        """How often its brokers were hurt."""
        return {"kills_and_pauses": len(self.strikes)}

    def login(self, user: str) -> dict[str, object]:
        """How librdkafka connects as a user."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "log_level": 0,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20,
        }

    def create_topics(self, names: Sequence[str], partitions: int) -> None:
        """Creates topics that keep everything."""
        forever = {"retention.ms": "-1"}
        admin = AdminClient(self.login(USERS[0]))
        made = admin.create_topics([NewTopic(name, partitions, config=forever) for name in names])
        for outcome in made.values():
            outcome.result()


class Cell(abc.ABC):
    """What every cell has. `with` runs its brokers and proxies; `folder` holds everything."""

    folder: Path
    metadata: Path
    store: CellStore

    tenants: Sequence[Tenant]

    @abc.abstractmethod
    def stop_brokers(self) -> None:
        """Ends every broker in order, so that nothing more is used; data stays."""

    def metadata_of(self, tenant: Tenant) -> ClusterStore:
        """A tenant's own metadata, as the control plane writes it."""
        return self.store.cluster(tenant.cluster_id)

    def scan(self, tenant: Tenant) -> LogScan:
        """A tenant's log, read from storage. Its brokers must not run."""
        return LogScan(
            self.folder / "dfs", self.folder / "bucket", self.metadata, tenant.cluster_id
        )

    def learn_topics(self) -> None:
        """Records the ids of all topics, the service's own among them."""
        for tenant in self.tenants:
            records = read_metadata(self.metadata, tenant.cluster_id)
            tenant.topics = {
                record["name"]: record["id"].replace("-", "")
                for key, record in records.items()
                if key.startswith("topic/")
            }

    @abc.abstractmethod
    def __enter__(self) -> Self:
        """Starts all."""

    @abc.abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends what still runs; data stays."""


@dataclass
class DirectTenant(Tenant):
    """A cluster with one broker, which is started again the moment it ends."""

    server: BrokerServer = field(kw_only=True)
    supervisor: Supervisor = field(kw_only=True)
    proxy: CountingProxy = field(kw_only=True)

    @property
    def bootstrap(self) -> str:
        """See `Tenant`."""
        return self.proxy.address

    def service(self) -> Connection:
        """See `Tenant`."""
        return Connection(self.proxy.address, PASSWORD, mechanism="SCRAM-SHA-256")

    def pids(self) -> Mapping[int, int]:
        """See `Tenant`."""
        process = self.server.process
        return {0: process.pid} if process and process.returncode is None else {}

    def kill(self) -> None:
        """See `Tenant`."""
        self.strikes.append(Strike(unix_ms(), frozenset({self.proxy.port})))
        self.supervisor.kill()


class TenantCell(Cell):
    """A cell of brokers that run directly, one for each cluster."""

    def __init__(self, folder: Path, tenants: int) -> None:
        self.folder = folder
        self.store = open_cell(folder)
        self.metadata = folder / METADATA
        self.tenants: Sequence[DirectTenant] = [
            self._tenant(number) for number in range(1, tenants + 1)
        ]
        self._stop = contextlib.ExitStack()

    def _tenant(self, number: int) -> DirectTenant:
        port, gateway_port = free_ports(2)
        server = self.broker(f"cl_tenant{number}", f"cl_tenant{number}", port)
        seen = Seen()
        proxy = CountingProxy(server.bootstrap, port, seen=seen)
        tenant = DirectTenant(
            number, seen, server=server, supervisor=Supervisor(server), proxy=proxy
        )
        add_cluster(self.store, tenant, [gateway_port], scale=1)
        self.metadata_of(tenant).set_user(SUPER_USER, PASSWORD, ["SCRAM-SHA-256"])
        return tenant

    def broker(self, name: str, cluster_id: str, advertised_port: int) -> BrokerServer:
        """A broker of a cluster; two of one cluster take over from each other."""
        return BrokerServer(
            self.folder / name,
            storage={
                "dfs": self.folder / "dfs",
                "bucket": self.folder / "bucket",
                "metadata": self.metadata,
                "cluster": cluster_id,
            },
            listener={
                "advertised": f"127.0.0.1:{advertised_port}",
                "sasl": ["SCRAM-SHA-256"],
            },
            security={"super_users": [f"User:{SUPER_USER}"]},
            lane=LANE,
        )

    def stop_brokers(self) -> None:
        """See `Cell`."""
        for tenant in self.tenants:
            tenant.supervisor.stop()
        self._stop.close()

    def remove(self) -> None:
        """Kills what still runs and removes all data."""
        self._stop.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Starts all."""
        with contextlib.ExitStack() as stack:
            for tenant in self.tenants:
                stack.enter_context(tenant.proxy)
                stack.enter_context(tenant.supervisor)
            self._stop = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kills what still runs; data stays."""
        self._stop.close()


METADATA = "metadata.sqlite"


def open_cell(folder: Path) -> CellStore:
    """Makes the folders of a cell, and its metadata store."""
    for name in ("dfs", "bucket", "usage"):
        (folder / name).mkdir(parents=True)
    return CellStore(folder / METADATA)


def add_cluster(store: CellStore, tenant: Tenant, ports: Sequence[int], scale: int) -> ClusterSpec:
    """Adds a tenant's cluster with its users, who may do everything."""
    cluster = store.cluster(tenant.cluster_id)
    cluster.create(scale=scale)
    for user in USERS:
        cluster.set_user(user, PASSWORD, ["SCRAM-SHA-256"])
    cluster.add_acls(
        Acl(resource_type=kind, resource_name=name, principal=f"User:{user}", operation="ALL")
        for user in USERS
        for kind, name in [("TOPIC", "*"), ("GROUP", "*"), ("CLUSTER", "kafka-cluster")]
    )
    spec = ClusterSpec(
        id=tenant.cluster_id,
        name=f"tenant{tenant.number}",
        organization_id=tenant.organization_id,
        generation=1,
        state="active",
        scale=scale,
        idle_timeout_ms=3_600_000,
        ports=tuple(ports),
        host=f"tenant{tenant.number}",
        connections_max=1000,
        wakes_per_minute_max=60,
    )
    store.put_spec(spec)
    return spec


def kafka_python_settings(tenant: Tenant, user: str) -> Mapping[str, Any]:
    """How kafka-python connects as a user."""
    return {
        "bootstrap_servers": tenant.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": user,
        "sasl_plain_password": PASSWORD,
        "reconnect_backoff_ms": 20,
        "reconnect_backoff_max_ms": 200,
    }

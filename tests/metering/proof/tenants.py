"""A cell with several tenants: one cluster each, its broker supervised, its clients counted.

Brokers run directly, as the keeper would start them, so that a kill hits at a known moment. Every
client comes through the tenant's proxy, which is the only address that the broker gives away.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic

from brokers.metadata import Acl, CellStore, ClusterSpec, ClusterStore
from brokers.secrets import SUPER_USER
from tests.brokers.logscan import LogScan, read_metadata
from tests.clients.servers import BrokerServer, Supervisor
from tests.metering.proof.counting_proxy import CountingProxy, unix_ms
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


@dataclass
class Tenant:
    """A cluster of an organization of its own."""

    number: int
    server: BrokerServer
    supervisor: Supervisor
    proxy: CountingProxy
    topics: dict[str, str] = field(default_factory=dict)
    """Ids (32 hex digits) by name."""
    kills_ms: list[int] = field(default_factory=list)
    """When its broker was killed, Unix time."""

    @property
    def cluster_id(self) -> str:
        """Its cluster."""
        return f"cl_tenant{self.number}"

    @property
    def organization_id(self) -> str:
        """Who pays."""
        return f"org_tenant{self.number}"

    def login(self, user: str) -> dict[str, object]:
        """How librdkafka connects as a user."""
        return {
            "bootstrap.servers": self.proxy.address,
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

    def kill(self) -> None:
        """kill -9 of the broker; returns once its successor serves."""
        self.kills_ms.append(unix_ms())
        self.supervisor.kill()


class TenantCell:
    """`with` runs every tenant's broker and proxy. Its folders hold everything."""

    def __init__(self, folder: Path, tenants: int) -> None:
        self.folder = folder
        for name in ("dfs", "bucket", "usage"):
            (folder / name).mkdir(parents=True)
        self.metadata = folder / "metadata.sqlite"
        self.store = CellStore(self.metadata)
        self.tenants = [self._tenant(number) for number in range(1, tenants + 1)]
        self._stop = contextlib.ExitStack()

    def _tenant(self, number: int) -> Tenant:
        port, gateway_port = free_ports(2)
        cluster_id = f"cl_tenant{number}"
        server = self.broker(cluster_id, cluster_id, port)
        tenant = Tenant(number, server, Supervisor(server), CountingProxy(server.bootstrap, port))
        cluster = self.store.cluster(cluster_id)
        cluster.create()
        for user in (*USERS, SUPER_USER):
            cluster.set_user(user, PASSWORD, ["SCRAM-SHA-256"])
        cluster.add_acls(
            Acl(resource_type=kind, resource_name=name, principal=f"User:{user}", operation="ALL")
            for user in USERS
            for kind, name in [("TOPIC", "*"), ("GROUP", "*"), ("CLUSTER", "kafka-cluster")]
        )
        self.store.put_spec(self._spec(tenant, gateway_port))
        return tenant

    def metadata_of(self, tenant: Tenant) -> ClusterStore:
        """A tenant's own metadata, as the control plane writes it."""
        return self.store.cluster(tenant.cluster_id)

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

    def _spec(self, tenant: Tenant, port: int) -> ClusterSpec:
        return ClusterSpec(
            id=tenant.cluster_id,
            name=f"tenant{tenant.number}",
            organization_id=tenant.organization_id,
            generation=1,
            state="active",
            scale=1,
            idle_timeout_ms=3_600_000,
            ports=(port,),
            host=f"tenant{tenant.number}",
            connections_max=1000,
            wakes_per_minute_max=60,
        )

    def scan(self, tenant: Tenant) -> LogScan:
        """A tenant's log, read from storage. Its broker must not run."""
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

    def stop_brokers(self) -> None:
        """Ends every broker in order, so that nothing more is used; data stays."""
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

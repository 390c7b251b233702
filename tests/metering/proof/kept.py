"""Clusters of one or more brokers as the service runs them: by a keeper, behind a gateway.

Clients reach the gateway, and the service the brokers' own listener, through proxies at a host of
the loopback of their own, on the same ports. Where answers name a broker, they name the proxy
before it, so what each one hands over is counted apart.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import kafka
from confluent_kafka.admin import AdminClient, PartitionMetadata
from kafka.errors import KafkaError

from brokers.metadata import BrokerStatus, CellStore, ClusterSpec
from brokers.secrets import create_cell_secret, super_password
from brokers.settings.writing import overrides_of
from provisioning.cell.drivers.files import SlotFiles
from provisioning.cell.drivers.process import identify_process
from provisioning.kafka import Connection
from tests.bench.service import wait_until_ready
from tests.brokers.logscan import read_metadata
from tests.clients.servers import SHORT
from tests.metering.proof.counting_proxy import CountingProxy, unix_ms
from tests.metering.proof.tenants import (
    LANE,
    METADATA,
    USERS,
    Cell,
    Strike,
    Tenant,
    add_cluster,
    kafka_python_settings,
    open_cell,
)
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports
from tests.supervisor.run import wait_until

ROOT = Path(__file__).parents[3]
# Where servers listen, and where the proxies before them do: names of one length.
SERVERS, PROXIES = "127.0.0.1", "127.0.0.3"
BROKERS: Mapping[str, Mapping[str, object]] = {**SHORT, "lane": LANE}
LOOK_S = 0.2
# How long a broker that was fenced stays paused still.
ZOMBIE_S = 1.0
# Limits that no passing run reaches.
FENCE_S, WHOLE_S, MOVE_S = 60.0, 180.0, 120.0


@dataclass
class KeptTenant(Tenant):
    """A cluster that a keeper runs. Which broker a fault hits is drawn."""

    store: CellStore = field(kw_only=True)
    metadata: Path = field(kw_only=True)
    run: Path = field(kw_only=True)
    """Where the keeper has its files of brokers."""
    spec: ClusterSpec = field(init=False)
    secret: bytes = field(kw_only=True, repr=False)
    draw: random.Random = field(kw_only=True)
    done: Counter[str] = field(default_factory=Counter)
    """What was done to it, and how often; each partition that got another leader is a move."""

    @property
    def bootstrap(self) -> str:
        """See `Tenant`."""
        return f"{PROXIES}:{self.spec.ports[0]}"

    def service(self) -> Connection:
        """See `Tenant`."""
        ports = [port_of(broker.kafka) for broker in self.brokers().values()]
        addresses = ",".join(f"{PROXIES}:{port}" for port in ports)
        return Connection(addresses or self.bootstrap, super_password(self.secret, self.cluster_id))

    def brokers(self) -> Mapping[int, BrokerStatus]:
        """The brokers that the keeper says serve, by slot."""
        status = self.store.statuses().get(self.cluster_id)
        return {broker.slot: broker for broker in status.brokers} if status else {}

    def pids(self) -> Mapping[int, int]:
        """See `Tenant`."""
        slots = range(max(1, len(self.spec.ports) - 1))
        files = (SlotFiles.of(self.run, self.cluster_id, slot) for slot in slots)
        known = {slot: one.read_state() for slot, one in enumerate(files)}
        return {
            slot: one.pid for slot, one in known.items() if one and identify_process(one.pid) == one
        }

    def kill(self) -> None:
        """See `Tenant`."""
        pid, _link = self._strike()
        os.kill(pid, signal.SIGKILL)
        self.done["kills"] += 1
        self.wait_whole(but=pid)

    def struck(self) -> Mapping[str, int]:
        """See `Tenant`."""
        return dict(self.done)

    def pause(self) -> None:
        """Stops a broker until others have fenced it and longer, has it go on, and ends it so.

        Returns once the cluster is whole again.
        """
        pid, link = self._strike()
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: link not in self._live(), "it is fenced", FENCE_S)
            threading.Event().wait(ZOMBIE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):  # the keeper replaced it
                os.kill(pid, signal.SIGCONT)
        self.done["pauses"] += 1
        self.wait_whole(but=pid)

    def move(self) -> None:
        """Has a client move every partition to another broker; returns once none is to be moved.

        All brokers lead as many as before. Else the controller would move some back.
        """
        self.wait_whole()
        slots, before = range(self.spec.scale), self._epochs()
        shift = self.draw.randrange(1, self.spec.scale)

        def is_taken() -> bool:
            partitions = self._partitions()
            replicas = {
                place: [(one.leader + shift + n) % len(slots) for n in range(len(one.replicas))]
                for place, one in partitions.items()
            }
            is_led = all(one.leader in slots for one in partitions.values())
            return is_led and self._ask_for(replicas)

        wait_until(is_taken, "moves are taken", MOVE_S)
        wait_until(lambda: not self._records("wanted_leader"), "partitions are moved", MOVE_S)
        self.done["partitions_moved"] += sum(
            epoch > before.get(place, epoch) for place, epoch in self._epochs().items()
        )

    def _ask_for(self, replicas: Mapping[tuple[str, int], Sequence[int]]) -> bool:
        """Asks for replicas of partitions; returns False where the broker could not be reached.

        Raises `RuntimeError` where it refused.
        """
        places = {kafka.TopicPartition(*place): list(nodes) for place, nodes in replicas.items()}
        try:
            admin = kafka.KafkaAdminClient(**kafka_python_settings(self, USERS[0]))
            with contextlib.closing(admin):
                refused = admin.alter_partition_reassignments(places)
        except KafkaError:
            return False  # a machine under load, as every client sees it
        if any(refused.values()):
            message = f"moves are refused: {refused}"
            raise RuntimeError(message)
        return True

    def scale_down_and_up(self) -> None:
        """Has the cluster lose its last broker, and get one again."""
        for scale in (self.spec.scale - 1, self.spec.scale):
            self.store.cluster(self.cluster_id).set_scale(scale)
            self.spec = replace(self.spec, generation=self.spec.generation + 1, scale=scale)
            self.store.put_spec(self.spec)
            self.wait_whole()
        self.done["scalings"] += 1

    def wait_whole(self, but: int | None = None) -> None:
        """Waits until all brokers serve, and none of them is the process `but`."""

        def is_whole() -> bool:
            brokers, slots = self.brokers(), set(range(self.spec.scale))
            pids = {slot: broker.pid for slot, broker in brokers.items()}
            links = {broker.link for broker in brokers.values()}
            runs = brokers.keys() == slots and pids == self.pids() and links == self._live()
            return runs and but not in pids.values()

        wait_until(is_whole, f"{self.cluster_id} is whole", WHOLE_S)

    def _strike(self) -> tuple[int, str]:
        """Draws a broker that a fault is to hit at once, and notes it.

        Returns its process, and its address for links.
        """
        self.wait_whole()
        slot, broker = self.draw.choice(sorted(self.brokers().items(), key=lambda one: one[0]))
        of_slots = self.spec.ports[1:] or self.spec.ports
        ports = frozenset({of_slots[slot], port_of(broker.kafka)})
        self.strikes.append(Strike(unix_ms(), ports))
        assert broker.pid is not None
        return broker.pid, broker.link

    def _live(self) -> set[str]:
        """The addresses for links of the brokers that were not ended."""
        starts = self._records("incarnation").values()
        return {start["place"]["link"] for start in starts if start["state"] == "live"}

    def _epochs(self) -> Mapping[str, int]:
        """The leader epoch of each partition. It grows with each leader."""
        return {place: stored["epoch"] for place, stored in self._records("partition").items()}

    def _records(self, kind: str) -> Mapping[str, Any]:
        """The cluster's records of a kind, by the rest of their keys."""
        records = read_metadata(self.metadata, self.cluster_id).items()
        start = f"{kind}/"
        return {key.removeprefix(start): one for key, one in records if key.startswith(start)}

    def _partitions(self) -> Mapping[tuple[str, int], PartitionMetadata]:
        """What brokers say of users' partitions, by topic and number."""
        topics = AdminClient(self.login(USERS[0])).list_topics(timeout=MOVE_S).topics
        return {
            (name, number): partition
            for name, topic in topics.items()
            if not name.startswith("__")
            for number, partition in topic.partitions.items()
        }


class KeptCell(Cell):
    """A cell whose clusters have so many brokers each; `scales` are by tenant."""

    def __init__(self, folder: Path, scales: Sequence[int], seed: int) -> None:
        self.folder = folder
        self.store = open_cell(folder)
        self.metadata = folder / METADATA
        self._secret = create_cell_secret(folder / "secret")
        self.tenants: Sequence[KeptTenant] = [
            self._tenant(number, scale, random.Random(f"{seed} {number} strikes"))
            for number, scale in enumerate(scales, 1)
        ]
        self._proxies = contextlib.ExitStack()
        self._servers: list[subprocess.Popen[bytes]] = []
        self._leaving = threading.Event()
        self._opener = threading.Thread(target=self._open_proxies, name="proxies", daemon=True)
        # Proxies before listeners that brokers choose the ports of, by port.
        self._inner: dict[int, tuple[KeptTenant, CountingProxy]] = {}

    def _tenant(self, number: int, scale: int, draw: random.Random) -> KeptTenant:
        tenant = KeptTenant(
            number,
            store=self.store,
            metadata=self.metadata,
            run=self.folder / "keeper" / "run",
            secret=self._secret,
            draw=draw,
        )
        # The first is that of all brokers; several have one each besides.
        ports = free_ports(1 if scale == 1 else 1 + scale)
        tenant.spec = add_cluster(self.store, tenant, ports, scale)
        return tenant

    def stop_brokers(self) -> None:
        """See `Cell`."""
        # In this order: what brokers hand over as they end comes through.
        for server in reversed(self._servers):
            stop_servers([server])
        self._servers.clear()
        self._leaving.set()
        if self._opener.is_alive():
            self._opener.join()
        self._proxies.close()

    def _start(
        self, name: str, settings: Mapping[str, Mapping[str, object]], *command: str
    ) -> None:
        config, log = self.folder / f"{name}.toml", self.folder / f"{name}.log"
        config.write_text("\n".join(overrides_of(settings)) + "\n")
        server = spawn_server([sys.executable, "-m", *command, "--config", config], log, cwd=ROOT)
        self._servers.append(server)
        wait_until_ready(server, log)

    def _open_proxies(self) -> None:
        """Keeps a proxy before each broker's own listener."""
        while not self._leaving.wait(LOOK_S):
            for tenant in self.tenants:
                for broker in tenant.brokers().values():
                    port = port_of(broker.kafka)
                    owner, proxy = self._inner.get(port, (None, None))
                    if owner is tenant:
                        continue
                    if proxy is not None:
                        # The port was another cluster's before.
                        proxy.__exit__(None, None, None)
                    proxy = self._proxy(tenant, port)
                    self._inner[port] = (tenant, proxy)
                    proxy.__enter__()
                    self._proxies.callback(proxy.__exit__, None, None, None)

    def _proxy(self, tenant: KeptTenant, port: int) -> CountingProxy:
        return CountingProxy(f"{SERVERS}:{port}", port, host=PROXIES, seen=tenant.seen)

    def __enter__(self) -> Self:
        """Starts all; clusters that slept are woken."""
        try:
            for tenant in self.tenants:
                for port in tenant.spec.ports:
                    self._proxies.enter_context(self._proxy(tenant, port))
            cell = {"metadata": self.metadata, "secret": self.folder / "secret"}
            storage = {name: self.folder / name for name in ("dfs", "bucket")}
            keeper: dict[str, Mapping[str, object]] = {
                "cell": {**cell, **storage},
                "keeper": {"folder": self.folder / "keeper", "stop_brokers_on_exit": True},
            }
            keeper |= {f"broker.{name}": values for name, values in BROKERS.items()}
            (self.folder / "keeper").mkdir()
            gateway: dict[str, Mapping[str, object]] = {
                "cell": cell,
                "listener": {"plain": SERVERS},
            }
            self._start("keeper", keeper, "provisioning.cell.keeper")
            self._start("gateway", gateway, "brokers", "gateway")
            for tenant in self.tenants:
                self.store.request_wake(tenant.cluster_id, requested_at_ms=unix_ms(), by="proof")
            for tenant in self.tenants:
                tenant.wait_whole()
            self._opener.start()
        except BaseException:
            self.stop_brokers()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends what still runs; data stays."""
        self.stop_brokers()


def port_of(address: str) -> int:
    """The port of `host:port`."""
    return int(address.rpartition(":")[2])

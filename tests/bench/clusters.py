"""Clusters of three brokers, ours and Apache Kafka's, of which one broker at a time is ended.

Clients reach ours through a gateway, as they do in the service: it resets their connections to a
broker that was fenced.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from confluent_kafka.admin import AdminClient

from brokers.metadata import BrokerStatus, ClusterStatus
from brokers.secrets import link_secret
from tests.bench.generators import Load
from tests.bench.probe import wait_until_served
from tests.bench.service import CLUSTER, Service
from tests.bench.sides import BROKER_CPU, FRESHET_PYTHON, WORK, Served
from tests.brokers.lanes import FENCED
from tests.peer.kafka import Peer
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports
from tests.supervisor.run import wait_until

BROKERS = 3
FRESHET3 = "freshet3"
KAFKA3 = "kafka3"
SIDES = (FRESHET3, KAFKA3)
WHOLE_SECONDS_MAX = 120.0
LOOK_SECONDS = 0.005
NOBODY = -1


class ClusterSide(Served, Protocol):
    """A cluster of three brokers."""

    @property
    def first_node(self) -> int:
        """The least node id."""

    @property
    def elects_preferred(self) -> bool:
        """Whether a preferred replica leads only once it is elected."""

    @property
    def servers(self) -> list[subprocess.Popen[bytes]]:
        """The processes, by node."""

    def respawn(self, node: int) -> None:
        """Starts the process of a node anew, which has ended."""

    @property
    def client(self) -> dict[str, object]:
        """The settings with which librdkafka connects and logs in."""

    def close(self) -> None:
        """Ends all brokers and removes their data."""


class KafkaCluster:
    """Three brokers of Apache Kafka, which are its controllers, too."""

    first_node, replication, elects_preferred = 1, BROKERS, True

    def __init__(self) -> None:
        folder = WORK / KAFKA3
        shutil.rmtree(folder, ignore_errors=True)
        self._peer = Peer(KAFKA3, cpus=BROKER_CPU, folder=folder)
        self._peer.start()
        self.respawn = self._peer.respawn

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return self._peer.bootstrap

    @property
    def client(self) -> dict[str, object]:
        """The settings with which librdkafka connects."""
        return {"bootstrap.servers": self.bootstrap}

    @property
    def servers(self) -> list[subprocess.Popen[bytes]]:
        """The processes, by node."""
        return self._peer.servers

    def close(self) -> None:
        """Ends all brokers and removes their data."""
        self._peer.close()


class FreshetCluster:
    """Three brokers of the release build over the same folders, behind a gateway."""

    first_node, replication, elects_preferred = 0, BROKERS, False

    def __init__(self) -> None:
        self._service = Service(FRESHET3, idle_timeout_ms=0, scale=BROKERS)
        self._folder = self._service.folder
        self._ports, self._links = free_ports(BROKERS), free_ports(BROKERS)
        self.servers: list[subprocess.Popen[bytes]] = []
        try:
            for node in range(BROKERS):
                self.servers.append(self._spawn(node))
            for server, port in zip(self.servers, self._ports, strict=True):
                wait_until_served(server, port, since=time.monotonic())
            self._publish_status()
            self._service.start_gateway()
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers, past the gateway."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    @property
    def client(self) -> dict[str, object]:
        """The settings with which librdkafka connects to the gateway and logs in."""
        return {"bootstrap.servers": self._service.bootstrap, **self._service.login}

    def fenced(self) -> int:
        """How many brokers others have fenced so far."""
        lanes = self._service.store.cluster(CLUSTER).lanes()
        return sum(lane.state in FENCED for lane in lanes)

    def respawn(self, node: int) -> None:
        """Starts the process of a slot anew."""
        self.servers[node] = self._spawn(node)

    def close(self) -> None:
        """Ends all of it and removes its data."""
        stop_servers(self.servers)
        self._service.close()

    def _publish_status(self) -> None:
        """Says where the brokers are, as their keeper does."""
        brokers = tuple(
            BrokerStatus(
                slot=node,
                link=f"127.0.0.1:{self._links[node]}",
                kafka=f"127.0.0.1:{self._ports[node]}",
                metrics="",
            )
            for node in range(BROKERS)
        )
        status = ClusterStatus(
            observed_generation=1,
            phase="running",
            since_ms=time.time_ns() // 1_000_000,
            brokers=brokers,
        )
        self._service.store.put_status(CLUSTER, status)

    def _spawn(self, node: int) -> subprocess.Popen[bytes]:
        config = self._folder / f"broker{node}.toml"
        lines = [
            f'storage.dfs = "{self._folder}/dfs"',
            f'storage.bucket = "{self._folder}/bucket"',
            f'storage.metadata = "{self._service.metadata}"',
            f'storage.cluster = "{CLUSTER}"',
            f"broker.node_id = {node}",
            "groups.initial_rebalance_delay_ms = 0",  # as the peer's
            # Past the gateway, where the bench looks who leads, nobody logs in.
            'security.super_users = ["User:ANONYMOUS"]',
            f'listener.kafka = "127.0.0.1:{self._ports[node]}"',
            f'listener.link = "127.0.0.1:{self._links[node]}"',
            'listener.brokers = "127.0.0.1:0"',
            f'listener.link_secret = "{link_secret(self._service.secret, CLUSTER)}"',
        ]
        config.write_text("\n".join(lines) + "\n")
        return spawn_server(
            [FRESHET_PYTHON, "-P", "-m", "brokers", "serve", "--config", config],
            self._folder / f"broker{node}.log",
            cpus=BROKER_CPU,
            cwd=self._folder,
        )


@contextlib.contextmanager
def running_cluster(name: str) -> Iterator[ClusterSide]:
    """A cluster that runs; in the end its data is removed."""
    side: ClusterSide = FreshetCluster() if name == FRESHET3 else KafkaCluster()
    try:
        yield side
    finally:
        side.close()


def load_on(
    side: ClusterSide,
    topic: str,
    records: int,
    record_bytes: int,
    *,
    rate: int = 0,
    skip_ms: int = 0,
) -> Load:
    """A load on a cluster, by which its clients connect to it. The rest is as `Load` has it."""
    settings = side.client
    bootstrap = str(settings.pop("bootstrap.servers"))
    return Load(bootstrap, topic, records, record_bytes, settings, rate=rate, skip_ms=skip_ms)


class Watcher:
    """Looks at a topic through brokers that stay."""

    def __init__(self, side: ClusterSide, topic: str) -> None:
        self._side, self._topic = side, topic

    def leader(self) -> int:
        """The node that leads the first partition."""
        return self.leaders()[0]

    def leaders(self) -> list[int]:
        """The nodes that lead, by partition."""
        return self._leaders(AdminClient({"bootstrap.servers": self._side.bootstrap}))

    def until_led_by(self, leaders: Sequence[int]) -> None:
        """Waits until these nodes lead, by partition."""
        wait_until(lambda: self.leaders() == leaders, "they lead", WHOLE_SECONDS_MAX, LOOK_SECONDS)

    def until_led_by_others(self, dead: int) -> float:
        """Waits until a survivor says that others lead all partitions; returns that moment."""
        addresses = self._side.bootstrap.split(",")
        addresses.pop(dead - self._side.first_node)
        admin = AdminClient({"bootstrap.servers": addresses[0]})
        moments: list[float] = []

        def is_led() -> bool:
            leaders = self._leaders(admin)
            moments.append(time.monotonic())
            return not {dead, NOBODY} & set(leaders)

        wait_until(is_led, "others lead", WHOLE_SECONDS_MAX, LOOK_SECONDS)
        return moments[-1]

    def until_whole(self) -> None:
        """Waits until all brokers are there, and all replicas in sync where there are some."""
        admin = AdminClient({"bootstrap.servers": self._side.bootstrap})

        def is_whole() -> bool:
            metadata = admin.list_topics(self._topic, timeout=WHOLE_SECONDS_MAX)
            partitions = metadata.topics[self._topic].partitions.values()
            in_sync = {len(partition.isrs) for partition in partitions}
            return len(metadata.brokers) == BROKERS and in_sync == {BROKERS}

        wait_until(is_whole, "the cluster is whole again", WHOLE_SECONDS_MAX, 0.2)

    def _leaders(self, admin: AdminClient) -> list[int]:
        """By partition."""
        metadata = admin.list_topics(self._topic, timeout=WHOLE_SECONDS_MAX)
        partitions = metadata.topics[self._topic].partitions
        return [int(partitions[index].leader) for index in sorted(partitions)] or [NOBODY]

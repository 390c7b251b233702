"""Clusters of three brokers, ours and Apache Kafka's, of which one broker at a time is ended."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Protocol

from confluent_kafka.admin import AdminClient

from brokers.metadata import CellStore
from tests.bench.probe import wait_until_served
from tests.bench.sides import BROKER_CPU, FRESHET_PYTHON, WORK, Served
from tests.peer.kafka import Peer
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports
from tests.supervisor.run import wait_until

BROKERS = 3
FRESHET3 = "freshet3"
KAFKA3 = "kafka3"
SIDES = (FRESHET3, KAFKA3)
CLUSTER = "bench"
# As in our brokers' settings; the secret protects nothing here.
LINK_SECRET = "5e" * 32
WHOLE_SECONDS_MAX = 120.0
LOOK_SECONDS = 0.005
NOBODY = -1


class ClusterSide(Served, Protocol):
    """A cluster of three brokers."""

    @property
    def first_node(self) -> int:
        """The least node id."""

    @property
    def servers(self) -> list[subprocess.Popen[bytes]]:
        """The processes, by node."""

    def respawn(self, node: int) -> None:
        """Starts the process of a node anew, which has ended."""

    def close(self) -> None:
        """Ends all brokers and removes their data."""


class KafkaCluster:
    """Three brokers of Apache Kafka, which are its controllers, too."""

    first_node, replication = 1, BROKERS

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
    def servers(self) -> list[subprocess.Popen[bytes]]:
        """The processes, by node."""
        return self._peer.servers

    def close(self) -> None:
        """Ends all brokers and removes their data."""
        self._peer.close()


class FreshetCluster:
    """Three brokers of the release build over the same folders."""

    first_node, replication = 0, BROKERS

    def __init__(self) -> None:
        self._folder = WORK / FRESHET3
        shutil.rmtree(self._folder, ignore_errors=True)
        for part in ("dfs", "bucket"):
            (self._folder / part).mkdir(parents=True)
        self._ports = free_ports(BROKERS)
        store = CellStore(self._folder / "metadata.sqlite").cluster(CLUSTER)
        store.create(scale=BROKERS)
        self.servers: list[subprocess.Popen[bytes]] = []
        try:
            for node in range(BROKERS):
                self.servers.append(self._spawn(node))
            for server, port in zip(self.servers, self._ports, strict=True):
                wait_until_served(server, port, since=time.monotonic())
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def respawn(self, node: int) -> None:
        """Starts the process of a slot anew."""
        self.servers[node] = self._spawn(node)

    def close(self) -> None:
        """Ends all brokers and removes their data."""
        stop_servers(self.servers)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _spawn(self, node: int) -> subprocess.Popen[bytes]:
        config = self._folder / f"broker{node}.toml"
        lines = [
            f'storage.dfs = "{self._folder}/dfs"',
            f'storage.bucket = "{self._folder}/bucket"',
            f'storage.metadata = "{self._folder}/metadata.sqlite"',
            f'storage.cluster = "{CLUSTER}"',
            f"broker.node_id = {node}",
            "groups.initial_rebalance_delay_ms = 0",  # as the peer's
            f'listener.kafka = "127.0.0.1:{self._ports[node]}"',
            'listener.brokers = "127.0.0.1:0"',
            f'listener.link_secret = "{LINK_SECRET}"',
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


class Watcher:
    """Looks at a topic of one partition through brokers that stay."""

    def __init__(self, side: ClusterSide, topic: str) -> None:
        self._side, self._topic = side, topic

    def leader(self) -> int:
        """The node that leads the partition."""
        admin = AdminClient({"bootstrap.servers": self._side.bootstrap})
        return self._leader(admin)

    def until_led_by_another(self, dead: int) -> float:
        """Waits until a survivor says that another node leads; returns that moment."""
        addresses = self._side.bootstrap.split(",")
        addresses.pop(dead - self._side.first_node)
        admin = AdminClient({"bootstrap.servers": addresses[0]})
        moments: list[float] = []

        def is_led() -> bool:
            leader = self._leader(admin)
            moments.append(time.monotonic())
            return leader not in {dead, NOBODY}

        wait_until(is_led, "another node leads", WHOLE_SECONDS_MAX, LOOK_SECONDS)
        return moments[-1]

    def until_whole(self) -> None:
        """Waits until all brokers are there, and all replicas in sync where there are some."""
        admin = AdminClient({"bootstrap.servers": self._side.bootstrap})

        def is_whole() -> bool:
            metadata = admin.list_topics(self._topic, timeout=WHOLE_SECONDS_MAX)
            partition = metadata.topics[self._topic].partitions.get(0)
            in_sync = 0 if partition is None else len(partition.isrs)
            return len(metadata.brokers) == BROKERS and in_sync == BROKERS

        wait_until(is_whole, "the cluster is whole again", WHOLE_SECONDS_MAX, 0.2)

    def _leader(self, admin: AdminClient) -> int:
        metadata = admin.list_topics(self._topic, timeout=WHOLE_SECONDS_MAX)
        partition = metadata.topics[self._topic].partitions.get(0)
        return NOBODY if partition is None else int(partition.leader)

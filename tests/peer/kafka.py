"""Real Apache Kafka as a peer: brokers on the loopback, and its Java tools by class name."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peer.jars import HERE, classpath
from tests.peer.processes import bound_command, spawn_server, stop_servers
from tests.ports import free_ports

START_SECONDS = 120.0
POLL_SECONDS = 0.02
STARTED = b"Kafka Server started"

# The options of Kafka's own start script, with a heap of which three fit into a small machine.
BROKER_OPTIONS = (
    "-server",
    "-Xms512m",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
    "-Dpeer.log.level=INFO",
)


@dataclass(frozen=True)
class Kind:
    """A way to run Kafka: how many brokers, and whether each write is synced."""

    brokers: int
    flush_each_write: bool = False

    @property
    def replication(self) -> int:
        """Replication factor of topics."""
        return min(self.brokers, 3)

    @property
    def in_sync_min(self) -> int:
        """Replicas that must have a write before it is acknowledged."""
        return 2 if self.replication > 1 else 1


KINDS = {
    "kafka1": Kind(brokers=1),
    "kafkaf": Kind(brokers=1, flush_each_write=True),
    "kafka3": Kind(brokers=3),
}


def java_command(main_class: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    """The command that runs a class of Kafka's jars."""
    logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
    return ["java", *options, logging, "-cp", classpath(), main_class, *arguments]


def java_tool(
    main_class: str,
    *arguments: str,
    text_in: str | None = None,
    cpus: str | None = None,
    heap: str = "512m",
    timeout: float = 240.0,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Runs one of Kafka's tools, such as `org.apache.kafka.tools.TopicCommand`, to its end.

    `timeout` is in seconds. With `check`, a failing tool raises `AssertionError` with its output.
    """
    command = java_command(main_class, *arguments, options=(f"-Xmx{heap}", "-XX:+UseSerialGC"))
    result = subprocess.run(
        bound_command(command, cpus),
        input=text_in if text_in is not None else "",
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check and result.returncode != 0:
        message = f"{main_class} {arguments} ended with {result.returncode}:\n"
        raise AssertionError(message + result.stdout + result.stderr)
    return result


class Peer:
    """A Kafka cluster of one kind. Storage is formatted at once; `start` may follow a `stop`.

    `cpus` pins every broker to these CPUs. `folder` is where logs, settings and data go (default:
    a new temporary folder); it is removed by `close`.
    """

    def __init__(
        self, kind: str = "kafka1", *, cpus: str | None = None, folder: Path | None = None
    ) -> None:
        self.kind = KINDS[kind]
        self.cpus = cpus
        self.folder = folder or Path(tempfile.mkdtemp(prefix=f"freshet-{kind}-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.servers: list[subprocess.Popen[bytes]] = []
        ports = free_ports(2 * self.kind.brokers)
        self.ports = ports[: self.kind.brokers]
        self._controllers = ports[self.kind.brokers :]
        self._format()

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers, as clients take them."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def pids(self) -> list[int]:
        """Process ids of the brokers that run."""
        return [server.pid for server in self.servers]

    def spawn(self) -> None:
        """Starts the brokers' processes without waiting for them."""
        if self.servers:
            message = "the peer runs already"
            raise RuntimeError(message)
        self.servers = [self._spawn_node(node) for node in self._nodes()]

    def respawn(self, node: int) -> None:
        """Starts the process of a node anew, without waiting for it. It has ended before."""
        self.servers[node - 1] = self._spawn_node(node)

    def _spawn_node(self, node: int) -> subprocess.Popen[bytes]:
        command = java_command("kafka.Kafka", str(self._settings(node)), options=BROKER_OPTIONS)
        return spawn_server(command, self._log(node), cpus=self.cpus)

    def start(self) -> None:
        """Starts the brokers and waits until each says that it has.

        Raises `RuntimeError` with the end of its log if one dies or takes two minutes.
        """
        self.spawn()
        deadline = time.monotonic() + START_SECONDS
        for node, server in zip(self._nodes(), self.servers, strict=True):
            while STARTED not in self._log(node).read_bytes():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    server.wait(POLL_SECONDS)
                if server.returncode is not None or time.monotonic() > deadline:
                    log = self._log(node).read_text(errors="replace")[-4000:]
                    self.stop()
                    message = f"Kafka's node {node} did not start:\n{log}"
                    raise RuntimeError(message)

    def stop(self) -> None:
        """Ends the brokers. Their data stays for another `start`."""
        stop_servers(self.servers)
        self.servers = []

    def close(self) -> None:
        """Ends the brokers and removes their folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Starts the brokers."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the brokers and removes their folder."""
        self.close()

    def _nodes(self) -> range:
        return range(1, self.kind.brokers + 1)

    def _settings(self, node: int) -> Path:
        return self.folder / f"node{node}.properties"

    def _log(self, node: int) -> Path:
        return self.folder / f"node{node}.log"

    def _format(self) -> None:
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        for node in self._nodes():
            self._settings(node).write_text(self._properties(node))
            java_tool(
                "kafka.tools.StorageTool",
                # As one argument, because an id may begin with a hyphen.
                *("format", f"--cluster-id={cluster_id}", "--config", str(self._settings(node))),
            )

    def _properties(self, node: int) -> str:
        """Settings of a node that is broker and controller in one (KRaft)."""
        replication, in_sync_min = self.kind.replication, self.kind.in_sync_min
        port, controller = self.ports[node - 1], self._controllers[node - 1]
        voters = ",".join(f"{n}@127.0.0.1:{self._controllers[n - 1]}" for n in self._nodes())
        properties = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.folder / f"data{node}",
            "default.replication.factor": replication,
            "min.insync.replicas": in_sync_min,
            "group.initial.rebalance.delay.ms": 0,
        }
        for prefix, in_sync in (
            ("offsets.topic", None),
            ("transaction.state.log", "transaction.state.log.min.isr"),
            ("share.coordinator.state.topic", "share.coordinator.state.topic.min.isr"),
        ):
            properties[f"{prefix}.replication.factor"] = replication
            properties[f"{prefix}.num.partitions"] = 10
            if in_sync is not None:
                properties[in_sync] = in_sync_min
        if self.kind.flush_each_write:
            properties["log.flush.interval.messages"] = 1
        return "".join(f"{key}={value}\n" for key, value in properties.items())

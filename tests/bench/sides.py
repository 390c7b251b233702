"""What is compared, as one kind of thing: Freshet, an earlier Freshet and Kafka, each pinned to the
brokers' CPU."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tests.bench.probe import wait_until_served
from tests.peer.jars import ROOT
from tests.peer.kafka import KINDS, Peer
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports

GENERATOR_CPU = "0"
BROKER_CPU = "1"

FRESHET = "freshet"
# Freshet as an earlier commit has it (`before.py`); the harness is this checkout's for both.
BEFORE = "before"
WORK = ROOT / ".bench" / "run"
# Built by `make bench` with the release profile, apart from the tests' environment.
FRESHET_PYTHON = ROOT / ".bench" / "venv" / "bin" / "python"
PYTHONS = {
    FRESHET: FRESHET_PYTHON,
    BEFORE: ROOT / ".bench" / "before" / "current" / "venv" / "bin" / "python",
}


class Served(Protocol):
    """A cluster as its clients know it."""

    @property
    def bootstrap(self) -> str:
        """Addresses, as clients take them."""

    @property
    def replication(self) -> int:
        """Replication factor to create topics with."""


class Side(Served, Protocol):
    """A cluster to measure. `start` may follow `stop`, over the same data."""

    @property
    def folder(self) -> Path:
        """Where all of its data lies."""

    @property
    def pids(self) -> list[int]:
        """Process ids of all brokers."""

    def start(self) -> float:
        """Starts it; returns the seconds from the first process to a served Metadata request."""

    def stop(self) -> None:
        """Ends it in order; data stays."""

    def kill(self) -> None:
        """Ends it with no chance to tidy up; data stays."""

    def close(self) -> None:
        """Ends it and removes its data."""


class KafkaSide:
    """Apache Kafka of one kind."""

    def __init__(self, kind: str) -> None:
        self.folder = WORK / kind
        shutil.rmtree(self.folder, ignore_errors=True)
        self._peer = Peer(kind, cpus=BROKER_CPU, folder=self.folder)
        self.replication = KINDS[kind].replication

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return self._peer.bootstrap

    @property
    def pids(self) -> list[int]:
        """Process ids of all brokers."""
        return self._peer.pids

    def start(self) -> float:
        """Starts all brokers; the slowest counts."""
        began = time.monotonic()
        self._peer.spawn()
        served = [
            wait_until_served(server, port, since=began)[1]
            for server, port in zip(self._peer.servers, self._peer.ports, strict=True)
        ]
        return max(served)

    def stop(self) -> None:
        """Ends all brokers in order."""
        self._peer.stop()

    def kill(self) -> None:
        """Kills all brokers."""
        _kill_servers(self._peer.servers)
        self._peer.stop()

    def close(self) -> None:
        """Kills all brokers and removes their data."""
        self.kill()
        self._peer.close()


class FreshetSide:
    """One Freshet broker of the release build, over folders on the checkout's disk."""

    replication = 1

    def __init__(self, settings: Sequence[str] = (), name: str = FRESHET) -> None:
        """`settings` are lines of TOML with dotted keys; they win over the side's own. `name` says
        which build it is: a key of `PYTHONS`."""
        self._name, self._python = name, PYTHONS[name]
        if not self._python.exists():
            message = f"{self._python} is missing: run the bench with `make bench`"
            raise FileNotFoundError(message)
        self.folder = WORK / name
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ("dfs", "bucket"):
            (self.folder / part).mkdir(parents=True)
        self._port, metrics = free_ports(2)
        self.metrics_address = f"127.0.0.1:{metrics}"
        self._server: subprocess.Popen[bytes] | None = None
        self._config = self.folder / "broker.toml"
        own = [
            f'storage.dfs = "{self.folder}/dfs"',
            f'storage.bucket = "{self.folder}/bucket"',
            f'storage.metadata = "{self.folder}/metadata.sqlite"',
            'storage.cluster = "bench"',
            "groups.initial_rebalance_delay_ms = 0",  # as the peer's
            f'listener.kafka = "127.0.0.1:{self._port}"',
            f'listener.metrics = "{self.metrics_address}"',
        ]
        unique = dict(line.split(" = ", 1) for line in (*own, *settings))
        self._config.write_text("".join(f"{key} = {value}\n" for key, value in unique.items()))

    @property
    def bootstrap(self) -> str:
        """The broker's address."""
        return f"127.0.0.1:{self._port}"

    @property
    def pids(self) -> list[int]:
        """The broker's process id."""
        return [self._server.pid] if self._server is not None else []

    def start(self) -> float:
        """Starts the broker as a user would, only not from the checkout's own packages (-P)."""
        began = time.monotonic()
        log = self.folder / "broker.log"
        self._server = spawn_server(
            [self._python, "-P", "-m", "brokers", "serve", "--config", self._config],
            log,
            cpus=BROKER_CPU,
            cwd=self.folder,
        )
        try:
            return wait_until_served(self._server, self._port, since=began)[1]
        except RuntimeError as error:
            error.add_note(log.read_text(errors="replace")[-4000:])
            if self._name == BEFORE:
                error.add_note(
                    "The broker of BEFORE did not start. If its log names a setting that it does "
                    "not know, choose a later commit: the settings are this checkout's."
                )
            raise

    def stop(self) -> None:
        """Ends the broker in order."""
        if self._server is not None:
            stop_servers([self._server])
        self._server = None

    def kill(self) -> None:
        """Kills the broker."""
        if self._server is not None:
            _kill_servers([self._server])
        self._server = None

    def close(self) -> None:
        """Kills the broker and removes its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def open_side(name: str, settings: Sequence[str] = ()) -> Side:
    """A side by name: a build of ours, with these lines of settings, or a kind of the peer."""
    return FreshetSide(settings, name) if name in PYTHONS else KafkaSide(name)


@contextlib.contextmanager
def running(name: str, settings: Sequence[str] = ()) -> Iterator[Side]:
    """A side as `open_side` gives it, started; in the end it is killed and its data removed."""
    side = open_side(name, settings)
    try:
        side.start()
        yield side
    finally:
        side.close()


def chosen(
    names: Sequence[str], only: Sequence[str] | None, before: str | None = None
) -> list[str]:
    """The sides to run. With the commit `before`, the side `before` follows ours.

    Raises `ValueError` if one of `only` is not a side of this bench.
    """
    if before is not None:
        after_ours = names.index(FRESHET) + 1
        names = [*names[:after_ours], BEFORE, *names[after_ours:]]
    unknown = set(only or ()) - set(names)
    if unknown:
        message = f"no such side: {sorted(unknown)}; there are {list(names)}"
        raise ValueError(message)
    return [name for name in names if only is None or name in only]


def kind_of(name: str) -> str:
    """`freshet` for every build of ours, or the kind of the peer."""
    return FRESHET if name in PYTHONS else name


def rotated(names: Sequence[str], round_number: int) -> list[str]:
    """The sides in an order that differs from round to round."""
    start = round_number % len(names)
    return [*names[start:], *names[:start]]


def work_folder() -> Path:
    """Where the sides keep their data: on the checkout's disk."""
    WORK.mkdir(parents=True, exist_ok=True)
    return WORK


def _kill_servers(servers: Sequence[subprocess.Popen[bytes]]) -> None:
    for server in servers:
        server.send_signal(signal.SIGKILL)
        server.wait()

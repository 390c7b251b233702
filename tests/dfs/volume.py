"""A GlusterFS of this machine alone: one brick, and mounts that stand for as many machines."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.dfs import needs
from tests.peer.processes import STOP_SECONDS
from tests.ports import free_ports
from tests.supervisor.run import wait_until

HOST = "127.0.0.1"
# What a mount needs to be fit for lanes: it remembers neither names nor attributes, and the kernel
# hands each read and write through. `docs/how-to/probe-a-folder.md` names these options, too.
FIT_OPTIONS: Mapping[str, object] = {
    "direct-io-mode": "enable",
    "attribute-timeout": 0,
    "entry-timeout": 0,
}
# What Gluster itself puts in front of a volume's bricks, the brick's side first, each with its
# options. It puts quick-read and md-cache there, too; those remember small files and attributes.
FIT_TRANSLATORS: Mapping[str, Mapping[str, object]] = {"write-behind": {}, "open-behind": {}}


class GlusterVolume:
    """`mounts` are folders that show what is in `brick`, each by a client of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        mounts: int = 2,
        options: Mapping[str, object] = FIT_OPTIONS,
        translators: Mapping[str, Mapping[str, object]] = FIT_TRANSLATORS,
    ) -> None:
        self.folder = folder
        self.brick = folder / "brick"
        self.mounts = [folder / f"mount{number}" for number in range(mounts)]
        self._options, self._translators = options, translators
        (self._port,) = free_ports(1)
        self._brick: subprocess.Popen[bytes] | None = None
        self._clients: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Starts all of it; returns once each mount shows the brick."""
        lacks = needs.missing()
        assert not lacks, f"this machine lacks {', '.join(lacks)}: run .ci/setup all as root"
        for path in (self.brick, *self.mounts):
            path.mkdir(parents=True)
        brick, client = self.folder / "brick.vol", self.folder / "client.vol"
        brick.write_text(brick_volume(self.brick, self._port))
        client.write_text(client_volume(self._port, self._translators))
        self._brick = self._spawn("brick", ["glusterfsd", f"--volfile={brick}"])
        wait_until(self._listens, "the brick listens")
        options = [f"--{name}={value}" for name, value in self._options.items()]
        for path in self.mounts:
            command = ["glusterfs", f"--volfile={client}", *options, str(path)]
            self._clients.append(self._spawn(path.name, command))
        wait_until(lambda: all(map(os.path.ismount, self.mounts)), "all is mounted")

    def _spawn(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts a program that ends, and unmounts what it has mounted, when we end."""
        files = [f"--log-file={self.folder / name}.log", f"--pid-file={self.folder / name}.pid"]
        # Killed as other servers are, a client would leave its mount behind.
        bound = ["setpriv", "--pdeathsig", "TERM", "--"]
        return subprocess.Popen(
            [*bound, *command, "--no-daemon", *files],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex((HOST, self._port)) == 0

    def stop(self) -> None:
        """Unmounts all and ends it. Programs that still have files of it open get errors."""
        for client in self._clients:
            _end(client)
        for path in filter(os.path.ismount, self.mounts):
            subprocess.run(["umount", "--lazy", path], check=True)
        if self._brick is not None:
            _end(self._brick)

    def __enter__(self) -> Self:
        """Starts it."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops it."""
        self.stop()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks a program to end, which unmounts; kills it where it does not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def brick_volume(folder: Path, port: int) -> str:
    """What the brick's program does: serves a folder, and its locks, to this machine alone."""
    server = {
        "transport-type": "tcp",
        "transport.socket.bind-address": HOST,
        "transport.socket.listen-port": port,
        "auth.addr.locks.allow": HOST,
    }
    return "".join(
        [
            _translator("posix", "storage/posix", {"directory": folder}),
            _translator("locks", "features/locks", {}, below="posix"),
            _translator("server", "protocol/server", server, below="locks"),
        ]
    )


def client_volume(port: int, translators: Mapping[str, Mapping[str, object]]) -> str:
    """What a mount's program does: asks the brick, with these translators of performance above."""
    client = {
        "transport-type": "tcp",
        "remote-host": HOST,
        "remote-port": port,
        "remote-subvolume": "locks",
    }
    parts = [_translator("client", "protocol/client", client)]
    below = "client"
    for name, options in translators.items():
        parts.append(_translator(name, f"performance/{name}", options, below=below))
        below = name
    return "".join(parts)


def _translator(name: str, kind: str, options: Mapping[str, object], below: str = "") -> str:
    lines = [f"volume {name}", f" type {kind}"]
    lines += [f" option {option} {value}" for option, value in options.items()]
    lines += [f" subvolumes {below}"] if below else []
    return "\n".join([*lines, "end-volume\n"])

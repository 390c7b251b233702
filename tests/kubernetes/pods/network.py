"""The namespaces of a node on this machine: for its processes, mounts and network.

A pair of virtual links connects the node's network with ours. Everything on the node ends with its
first process, mounts and links included, so nothing is left behind, however the test ends. Pods
have addresses of `pods`, which this machine reaches over the link; they reach this machine at
`outside`.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peer.processes import bound_command

# Kernel settings that a kubelet requires, and which apply to the whole machine. The node has files
# of its own with these values, so the kubelet does not change them.
TUNABLES = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}
# Folders of the machine that containerd, runc and the kubelet write to whatever their settings say.
OWN_FOLDERS = ("/run/containerd", "/var/lib/kubelet", "/var/lib/cni", "/run/netns")
BRIDGE = "pods0"
NETWORKS = 200


class Network:
    """The namespaces of a node. `number` distinguishes it from other nodes on this machine."""

    def __init__(self) -> None:
        self._name = _take_number()
        self.number = int(self._name.getsockname()[1:].decode().rpartition("-")[2])
        self.outside = f"10.213.{self.number}.1"
        self.inside = f"10.213.{self.number}.2"
        self.gateway = f"10.214.{self.number}.1"
        self.pods = f"10.214.{self.number}.0/24"
        self._link_name = f"fresh{self.number}"
        self._first: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def __enter__(self) -> Self:
        """Makes the namespaces and the link to our network."""
        try:
            self._begin()
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
        """Ends all that runs on the node."""
        self.close()

    def close(self) -> None:
        """Ends all that runs on the node."""
        if self._first is not None:
            # The link would also go by itself, but later, and the next node may need its name.
            subprocess.run(["ip", "link", "del", self._link_name], check=False, capture_output=True)
            self._first.kill()
            self._first.wait()
            if self._first.stdout is not None:
                self._first.stdout.close()
        self._name.close()

    def command(self, command: Sequence[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
        """The command line that runs a command on the node."""
        return ["nsenter", f"--target={self._pid}", "--net", "--mount", "--pid", "--", *command]

    def run(
        self,
        *command: str | os.PathLike[str],
        environment: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> str:
        """Runs a command on the node. Returns its output."""
        done = subprocess.run(
            self.command(command), check=False, capture_output=True, text=True, env=environment
        )
        if check and done.returncode:
            shown = " ".join(map(str, command))
            message = f"{shown}: {done.returncode}: {done.stderr[-2000:]}"
            raise RuntimeError(message)
        return done.stdout

    def _begin(self) -> None:
        # The first process is killed with us, and all others of the namespace with it. It reaps
        # orphans, as a first process must, and prints its pid, which differs inside.
        spaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        first = ["bash", "-c", "echo begun; sleep infinity & wait"]
        self._first = subprocess.Popen(
            bound_command([*spaces, *first]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self._first.stdout is not None
        assert self._first.stdout.readline() == b"begun\n", "no namespaces could be made"
        children = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children").read_text()
        self._pid = int(children.split()[0])
        self._mount()
        self._link()

    def _mount(self) -> None:
        lines = [
            "set -e",
            "mount --make-rshared /",
            *(f"mkdir -p {folder}; mount -t tmpfs none {folder}" for folder in OWN_FOLDERS),
            "mkdir /run/containerd/tunables",
        ]
        for place, (name, value) in enumerate(TUNABLES.items()):
            own = f"/run/containerd/tunables/{place}"
            lines.append(f"echo {value} > {own}; mount --bind {own} /proc/sys/{name}")
        lines.append("echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.run("bash", "-c", "\n".join(lines))

    def _link(self) -> None:
        ours, theirs = self._link_name, "outside"
        ip = ["ip", "link", "add", ours, "type", "veth"]
        subprocess.run([*ip, "peer", "name", theirs, "netns", str(self._pid)], check=True)
        for line in (
            f"addr add {self.outside}/30 dev {ours}",
            f"link set {ours} up",
        ):
            subprocess.run(["ip", *line.split()], check=True)
        for line in (
            "link set lo up",
            f"addr add {self.inside}/30 dev {theirs}",
            f"link set {theirs} up",
            f"route add default via {self.outside}",
            f"link add {BRIDGE} type bridge",
            f"addr add {self.gateway}/24 dev {BRIDGE}",
            f"link set {BRIDGE} up",
        ):
            self.run("ip", *line.split())
        route = f"route add {self.pods} via {self.inside} dev {ours}"
        subprocess.run(["ip", *route.split()], check=True)


def _take_number() -> socket.socket:
    """Takes a number that no other node of this machine has, by binding an abstract socket."""
    for number in range(NETWORKS):
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0freshet-test-node-{number}")
        except OSError:
            name.close()
            continue
        return name
    message = "too many nodes on this machine"
    raise RuntimeError(message)

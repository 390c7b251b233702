"""Packets that are lost between brokers, and wall clocks that are wrong.

Brokers run with `shim.c` loaded. It gives each process an address within the loopback, by which a
rule of the kernel's packet filter (`nft`) tells the packets of two brokers from all others.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

FOLDER_VARIABLE = "LD_CHAOS_FOLDER"
TABLE = "chaos"
NS_PER_S = 1_000_000_000
COUNTER = re.compile(r"counter packets (\d+)")


class Peer(Protocol):
    """A broker as the others reach it."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def port(self) -> int:
        """The port of its listener for brokers."""


def compile_shim(folder: Path) -> Path:
    """Compiles the shim; returns the path of the library."""
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    return library


class Clocks:
    """The wall clocks of processes with the shim."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def shift(self, pid: int, seconds: float) -> None:
        """Sets how far a process's clock is ahead. Raises `OSError` where it has no shim."""
        # In place: the process has mapped the file.
        with (self.folder / str(pid)).open("r+b") as file:
            file.write(struct.pack("q", round(seconds * NS_PER_S)))


class Network:
    """The packets between brokers of this network namespace."""

    def lose(self, pairs: Sequence[tuple[Peer, Peer]], percent: int) -> None:
        """Loses so many of the packets from the first to the second of each pair.

        Replaces what was lost before. Raises `subprocess.CalledProcessError`.
        """
        chance = "" if percent >= 100 else f"numgen random mod 100 < {percent} "
        lines = []
        for source, target in pairs:
            # The one that connected has an address of its own, the listening one its port.
            lines += [
                f"ip saddr {own_address(source.pid)} tcp dport {target.port} {chance}counter drop",
                f"ip daddr {own_address(target.pid)} tcp sport {source.port} {chance}counter drop",
            ]
        rules = "\n".join(lines)
        self._apply(
            f"table ip {TABLE} {{}}\ndelete table ip {TABLE}\ntable ip {TABLE} {{\nchain lost {{\n"
            f"type filter hook output priority 0; policy accept;\n{rules}\n}}\n}}\n"
        )

    def heal(self) -> int:
        """Loses nothing any more; returns how many packets were lost since `lose`."""
        listed = subprocess.run(
            ["nft", "list", "table", "ip", TABLE], capture_output=True, check=False, text=True
        )
        self._apply(f"table ip {TABLE} {{}}\ndelete table ip {TABLE}\n")
        return sum(int(count) for count in COUNTER.findall(listed.stdout))

    def _apply(self, ruleset: str) -> None:
        subprocess.run(["nft", "-f", "-"], input=ruleset.encode(), check=True)


def own_address(pid: int) -> str:
    """The address that a process with the shim connects from."""
    return f"127.128.{pid >> 8 & 255}.{pid & 255}"

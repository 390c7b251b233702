"""Which ports a start needs, and who has them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from console.programs.supervisor.errors import StartError
from console.programs.supervisor.processes import listener_on


@dataclass(frozen=True)
class Port:
    """A port that a start will listen on. `setting`: the variable that moves it."""

    number: int
    purpose: str
    setting: str


def is_free(number: int, host: str = "127.0.0.1") -> bool:
    """Tells whether `host:number` can be listened on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # As servers do: what lingers of closed connections is no one in the way.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise
    return True


def check_ports(ports: Iterable[Port]) -> None:
    """Names every port that is taken, by whom, and what to set; raises StartError."""
    complaints = []
    for port in ports:
        if not is_free(port.number):
            holder = listener_on(port.number)
            by = f" by {holder}" if holder else ""
            complaints.append(
                f"Port {port.number} ({port.purpose}) is taken{by}: set {port.setting} to another."
            )
    if complaints:
        raise StartError(" ".join(complaints))

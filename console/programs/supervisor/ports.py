"""Checks that the ports of a start are free, and finds out who has them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg

from console.programs.supervisor.errors import StartError
from console.programs.supervisor.processes import listener_on


@dataclass(frozen=True)
class Port:
    """A port that a start will listen on. `setting`: the variable that sets another one."""

    number: int
    purpose: str
    setting: str


def is_free(number: int, host: str = "127.0.0.1") -> bool:
    """Returns whether a program can listen on `host:number`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # Servers set this too: connections that were closed and still linger are no obstacle.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise
    return True


def check_ports(ports: Iterable[Port]) -> None:
    """Raises `StartError` where ports are taken: it names each, by whom, and what to set."""
    complaints = []
    purposes: dict[int, str] = {}
    for port in ports:
        if port.number and port.number in purposes:
            by = f" by {purposes[port.number]}"
        elif is_free(port.number):
            purposes[port.number] = port.purpose
            continue
        else:
            holder = listener_on(port.number)
            by = f" by {holder}" if holder else ""
        complaints.append(
            f"Port {port.number} ({port.purpose}) is taken{by}: set {port.setting} to another."
        )
    if complaints:
        raise StartError(" ".join(complaints))


async def check_clusters_ports(dsn: str, ports: Sequence[Port]) -> None:
    """Raises `StartError` where a cluster has one of the service's own ports for its clients."""
    numbers = [port.number for port in ports]
    query = "SELECT port, cluster_id FROM provisioning_cellport WHERE port = ANY(%s)"
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        rows = await (await connection.execute(query, (numbers,))).fetchall()
    clusters: dict[int, str] = dict(rows)
    complaints = [
        f"Port {port.number} ({port.purpose}) is the cluster {clusters[port.number]}'s:"
        f" set {port.setting} to another, or delete the cluster."
        for port in ports
        if port.number in clusters
    ]
    if complaints:
        raise StartError(" ".join(complaints))

"""Loopback ports for the servers of tests: below those that the kernel gives to whoever names none,
and held by name across processes.

A server that is killed and started again finds its port free: no client's connection and no other
test can have taken it meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import socket
from collections.abc import Iterator

# As many as a service has for its clusters, and two more: for 62 clusters.
BLOCK = 250
_BLOCKS = range(12_000, 22_000, BLOCK)
_SHARE = 1_000
_SHARES = range(22_000, 32_000, _SHARE)

# The names of what this process took, which are its own until it ends.
_taken: list[socket.socket] = []


def free_block() -> range:
    """`BLOCK` ports in a row that nobody listens on. They are this process's until it ends."""
    blocks = (range(first, first + BLOCK) for first in _BLOCKS)
    free = (block for block in blocks if _take_block(block.start) and _all_free(block))
    block = next(free, None)
    assert block is not None, f"no {BLOCK} free ports in a row"
    return block


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on. Each comes again only after hundreds of others."""
    ports = list(itertools.islice(_own_ports(), count))
    assert len(ports) == count, f"no {count} free ports"
    return ports


def _own_ports() -> Iterator[int]:
    share = _own_share()
    for _ in range(_SHARE):
        port = next(share)
        if _all_free(range(port, port + 1)):
            yield port


@functools.cache
def _own_share() -> Iterator[int]:
    first = next(filter(_take_block, _SHARES), None)
    assert first is not None, "too many processes take ports for tests"
    return itertools.cycle(range(first, first + _SHARE))


def _take_block(first: int) -> bool:
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0freshet-test-ports-{first}")
    except OSError:
        name.close()
        return False
    _taken.append(name)
    return True


def _all_free(ports: range) -> bool:
    try:
        with contextlib.ExitStack() as held:
            for port in ports:
                listener = held.enter_context(socket.socket())
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True

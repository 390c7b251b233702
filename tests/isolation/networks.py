"""A network of a test's own, with whatever addresses the test wants: a namespace of the kernel.

A namespace belongs to a thread, and a socket to the namespace in which it was made. So one thread
of this process lives in the test's network; what it runs and starts sees nothing but that network,
and its sockets may be used from any thread. It takes root.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import ParamSpec, TypeVar

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
# As Kubernetes writes it: names are first tried within the domains of the cluster.
RESOLV_CONF = """\
search freshet-system.svc.cluster.local svc.cluster.local cluster.local
nameserver {}
options ndots:5
"""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class OwnNetwork:
    """Runs functions, one after the other, in a network whose machine has these addresses."""

    def __init__(self, thread: ThreadPoolExecutor) -> None:
        self._thread = thread

    def run(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Returns what the function returns, or raises what it raises."""
        return self._thread.submit(function, *arguments, **named).result()

    def shrink_buffers(self, size: int) -> None:
        """Has the kernel keep about `size` bytes at most for each end of a TCP connection."""
        for name in ("tcp_rmem", "tcp_wmem"):
            # The file is that of the network of the thread that opens it.
            file = Path("/proc/sys/net/ipv4", name)
            self.run(file.write_text, f"{size} {size} {size}")


@contextmanager
def own_network(addresses: Sequence[str], resolver: str = "127.0.0.1") -> Iterator[OwnNetwork]:
    """Makes a network of one machine, which has loopback and `addresses`, of IPv4 or IPv6.

    Names are asked for at the DNS server `resolver`, if there is one.
    """
    with (
        tempfile.TemporaryDirectory(prefix="own-network-") as folder,
        ThreadPoolExecutor(1, thread_name_prefix="own-network") as thread,
    ):
        settings = Path(folder, "resolv.conf")
        settings.write_text(RESOLV_CONF.format(resolver))
        thread.submit(_enter_network, addresses, settings).result()
        yield OwnNetwork(thread)


def _enter_network(addresses: Sequence[str], resolver_settings: Path) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no network of its own: {os.strerror(number)}")
    # The mount is this thread's alone, and goes with it.
    _run("mount", "--make-rprivate", "/")
    _run("mount", "--bind", str(resolver_settings), "/etc/resolv.conf")
    _run("ip", "link", "set", "lo", "up")
    for address in addresses:
        # `nodad`: an IPv6 address can be used at once.
        kind = ["nodad"] if ip_address(address).version == 6 else []
        _run("ip", "address", "add", address, "dev", "lo", *kind)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)

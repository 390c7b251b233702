"""Finds remote calls that were made outside of the seam: no list of ours says which there are.

Python's profile tells of each call into C, so that the extension's, librdkafka's and sockets' are
seen whoever makes them; its audit events tell of files that go, processes and connections.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from brokers import _core
from tests.provisioning.faults.seam import Seam

# Modules of C whose objects lead out of the process.
OUTWARD = {"cimpl", "_socket"}
STORES = (_core.Metadata, _core.ClusterMetadata)
# They only make a handle, or let go of one.
HANDLES = {"cluster", "__exit__", "close", "fileno"}
EVENTS = {
    "shutil.rmtree",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "socket.connect",
    "socket.sendto",
    "subprocess.Popen",
    "urllib.Request",
}

_watching: list[tuple[Seam, list[str]]] = []


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    for seam, escaped in _watching:
        if event in EVENTS and not seam.inside:
            escaped.append(f"{event}{arguments[:1]}")


# There is no way to take a hook away: it does nothing while nobody watches.
sys.addaudithook(_heard)


@contextmanager
def watched(seam: Seam) -> Iterator[list[str]]:
    """Gives what escapes the seam in this thread, as long as the block lasts."""
    escaped: list[str] = []

    def called(frame: FrameType, event: str, what: Any) -> None:  # noqa: ANN401 (C's function)
        if event != "c_call" or seam.inside:
            return
        owner = getattr(what, "__self__", None)
        outward = isinstance(owner, STORES) or type(owner).__module__ in OUTWARD
        if outward and what.__name__ not in HANDLES:
            escaped.append(f"{type(owner).__name__}.{what.__name__} at {frame.f_code.co_name}")

    before = sys.getprofile()
    _watching.append((seam, escaped))
    sys.setprofile(called)
    try:
        yield escaped
    finally:
        sys.setprofile(before)
        _watching.remove((seam, escaped))

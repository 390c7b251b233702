"""Finds remote calls that were made outside of the seam, without a list of all calls in the code.

Python's profile hook runs at each call into C. It sees the calls of our extension, of librdkafka
and of sockets, whichever code makes them. Python's audit hook runs when files are removed or
renamed, processes are started and connections are opened.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from brokers import _core
from tests.provisioning.faults.seam import Seam

# C modules whose objects call other processes: `cimpl` is confluent_kafka's.
OUTWARD = {"cimpl", "_socket"}
STORES = (_core.Metadata, _core.ClusterMetadata)
# Functions that only open or close a handle, and change nothing.
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


def _note_event(event: str, arguments: tuple[object, ...]) -> None:
    for seam, escaped in _watching:
        if event in EVENTS and not seam.inside:
            escaped.append(f"{event}{arguments[:1]}")


# Python cannot remove an audit hook: this one does nothing while nobody watches.
sys.addaudithook(_note_event)


@contextmanager
def watched(seam: Seam) -> Iterator[list[str]]:
    """Yields a list that gets the calls which this thread makes beside the seam in the block."""
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

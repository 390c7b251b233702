"""The groups of clusters that somebody looks at, as their brokers say now: read once for all.

A process keeps the pictures of a cluster's brokers while somebody asks, and reads on at most once a
second. Whoever comes while a reading is under way waits for it and shares it. Brokers may be in a
tenant's hands, so what they cost is bounded: memory, time, and the share of a processor that goes
into reading one cluster.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from provisioning.cell.status.groups import GroupTable
from provisioning.cell.status.picture import Picture
from provisioning.cell.status.reader import read_on

# How many clusters are kept, and about how many bytes of memory they may take: one broker, and all.
CLUSTERS_MAX = 256
BROKER_BYTES_MAX = 64 * 1024 * 1024
BYTES_MAX = 192 * 1024 * 1024

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class ReadingPace:
    """Times of readings, in seconds.

    - `interval_s`: the least time from the beginning of one to that of the next.
    - `work_share`: the part of a processor that readings of one cluster take at most; one that took
      more work is shared for longer.
    - `timeout_s`: how long one may take.
    - `refused_s`: how long brokers are not asked that did not answer with a status.
    - `kept_s`: how long a picture is kept that nobody looks at.
    """

    interval_s: float = 1.0
    work_share: float = 0.05
    timeout_s: float = 2.0
    refused_s: float = 10.0
    kept_s: float = 60.0


@dataclass(frozen=True)
class Brokers:
    """The brokers of a cluster: pairs of node id and address (`host:port`) of the status."""

    cluster: str
    addresses: tuple[tuple[int, str], ...]


class KeptPictures:
    """The pictures of a process. It is thread-safe."""

    def __init__(
        self, pace: ReadingPace | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pace = pace or ReadingPace()
        self._clock = clock
        # By cluster; the one that was looked at last stands last.
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def look(
        self, brokers: Brokers, use: Callable[[GroupTable], Seen], *, anew: bool = False
    ) -> Seen | None:
        """What `use` makes of a cluster's groups; None where brokers do not say them.

        They are at most `interval_s` old, or older where reading them takes much work. With `anew`
        they were read after this call began, or are None. `use` must not keep the table. It waits
        for readings for at most three times as long as one may take.
        """
        if not brokers.addresses:
            return None
        kept = self._keep(brokers)
        seen = kept.look(use, anew=anew)
        self._drop_beyond_limits()
        return seen

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def _keep(self, brokers: Brokers) -> _Kept:
        with self._lock:
            kept = self._kept.get(brokers.cluster)
            if kept is None or kept.brokers != brokers:
                kept = self._kept[brokers.cluster] = _Kept(brokers, self._pace, self._clock)
            self._kept.move_to_end(brokers.cluster)
            kept.looked_at = self._clock()
            if self._timer is None:
                self._start_timer()
            return kept

    def _drop_beyond_limits(self) -> None:
        with self._lock:
            while len(self._kept) > 1 and (
                len(self._kept) > CLUSTERS_MAX
                or sum(kept.bytes for kept in self._kept.values()) > BYTES_MAX
            ):
                self._kept.popitem(last=False)

    def _start_timer(self) -> None:
        self._timer = threading.Timer(self._pace.kept_s / 2, self._drop_unused)
        self._timer.daemon = True
        self._timer.start()

    def _drop_unused(self) -> None:
        with self._lock:
            before = self._clock() - self._pace.kept_s
            while self._kept and next(iter(self._kept.values())).looked_at <= before:
                self._kept.popitem(last=False)
            self._timer = None
            if self._kept:
                self._start_timer()


class _Kept:
    """The pictures of one cluster's brokers.

    No reading is under way while a table is used, because a reading changes the pictures under it.
    """

    def __init__(self, brokers: Brokers, pace: ReadingPace, clock: Callable[[], float]) -> None:
        self.brokers = brokers
        self.looked_at = 0.0
        self.bytes = 0
        self._pace = pace
        self._clock = clock
        self._turn = threading.Condition()
        self._reading = False
        # The last reading: what it gave, when it began and ended, and when the next may begin.
        self._table: GroupTable | None = None
        self._began = self._ended = self._due = -math.inf
        # By address; all readings so far add up to them.
        self._pictures = self._empty()

    def look(self, use: Callable[[GroupTable], Seen], *, anew: bool) -> Seen | None:
        """See `KeptPictures.look`."""
        came = self._clock()
        deadline = came + 2 * self._pace.timeout_s
        while True:
            with self._turn:
                while self._reading:
                    if not self._turn.wait(deadline - self._clock()):
                        return None
                if self._may_use(came, anew=anew):
                    return None if self._table is None else use(self._table)
                if not self._may_read(anew=anew):
                    return None
                self._reading, self._began = True, self._clock()
            self._read()

    def _may_use(self, came: float, *, anew: bool) -> bool:
        if anew:
            return self._began >= came
        # What was read meanwhile is for all who waited, however long it took.
        return self._ended >= came or (self._table is not None and self._clock() < self._due)

    def _may_read(self, *, anew: bool) -> bool:
        # Not while they are refused, nor where they take too much work, whoever asks.
        held = self._due > self._began + self._pace.interval_s
        return self._clock() >= self._due or (anew and not held)

    def _read(self) -> None:
        before_s = time.thread_time()
        table, answered = None, False
        try:
            answered = asyncio.run(read_on(self._pictures, timeout_s=self._pace.timeout_s))
            if answered and all(picture.complete for picture in self._pictures.values()):
                table = GroupTable(list(self._pictures.values()))
        finally:
            worked_s = time.thread_time() - before_s
            with self._turn:
                self._reading, self._table, self._ended = False, table, self._clock()
                pause_s = max(self._pace.interval_s, worked_s / self._pace.work_share)
                self._due = self._began + pause_s
                if not answered:
                    self._due = max(self._due, self._ended + self._pace.refused_s)
                    self._pictures = self._empty()
                self.bytes = sum(picture.bytes for picture in self._pictures.values())
                self._turn.notify_all()

    def _empty(self) -> dict[str, Picture]:
        cluster = self.brokers.cluster
        return {
            address: Picture(slot, cluster=cluster, bytes_max=BROKER_BYTES_MAX)
            for slot, address in self.brokers.addresses
        }


_shared: KeptPictures | None = None
_shared_lock = threading.Lock()


def shared_pictures() -> KeptPictures:
    """The pictures of this process, which are created at the first call."""
    global _shared  # noqa: PLW0603 (one a process)
    with _shared_lock:
        if _shared is None:
            _shared = KeptPictures()
        return _shared


def _forget_after_fork() -> None:
    """Begins anew in a forked child: a reading that was under way is its parent's."""
    global _shared, _shared_lock
    _shared, _shared_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)

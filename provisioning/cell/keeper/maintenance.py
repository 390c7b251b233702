"""etcd's history and size: the keeper that has the cell compacts the one and tells the other.

etcd keeps every value that a key ever had, until it is told to drop what is before a revision. The
key `keeper/compaction` marks one: its own, at the time that its value says. When it is as old as
the interval, all before it is dropped and it is written anew. So whoever follows changes with a
delay of less than the interval finds them, and it goes on where another keeper takes over.

A compaction frees room within a member's database file and does not make the file smaller. The
quota applies to the file, so that is what counts; a defragmentation by `etcdctl` makes it smaller.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace

from brokers.errors import InvalidError, MetadataError
from brokers.etcd import Entry, Etcd, MemberStatus
from brokers.locations import EtcdLocation
from console.base.runtime.clock import Clock
from provisioning.cell.keeper.metrics import Metrics

LOGGER = logging.getLogger(__name__)

KEY = "keeper/compaction"
VERSION = 1
# Between two turns: a compaction that failed is tried again at the next one.
TURN_S = 15.0
# How long one member may take to answer.
TIMEOUT_S = 3.0


class EtcdMaintenance:
    """One for a cell. `leads`: whether the cell is still ours; nothing is compacted otherwise.

    `quota_bytes`: what holds of members that do not tell theirs.
    """

    def __init__(
        self,
        location: EtcdLocation,
        metrics: Metrics,
        clock: Clock,
        *,
        leads: Callable[[], bool],
        interval_ms: int,
        quota_bytes: int,
    ) -> None:
        self._etcd = Etcd(location, timeout_s=TIMEOUT_S)
        # Each has a database of its own, and is asked for its size by itself.
        self._members = {
            member: Etcd(replace(location, members=(member,)), timeout_s=TIMEOUT_S)
            for member in location.members
        }
        self._metrics = metrics
        self._clock = clock
        self._leads = leads
        self._interval_ms = interval_ms
        self._quota_bytes = quota_bytes
        # What each member told last, and those whose size could not be had at the last turn.
        self._told: dict[str, MemberStatus] = {}
        self._unknown: set[str] = set()
        self._failing = False
        self.fullest: MemberStatus | None = None

    async def run(self) -> None:
        """Turn by turn, until it is cancelled. No failure ends it."""
        while True:
            try:
                await asyncio.to_thread(self.turn)
            except Exception:
                # It is tried again in a moment; nobody else could.
                LOGGER.exception("etcd's maintenance failed")
            await asyncio.sleep(min(TURN_S, self._interval_ms / 1000))

    def turn(self) -> None:
        """Asks for the sizes, and compacts where it is time."""
        self._measure()
        try:
            self._compact()
        except MetadataError as error:
            self._metrics.count("etcd_compaction_failures")
            if not self._failing:
                LOGGER.error("etcd's history is not compacted: %s", error)
            self._failing = True
            return
        if self._failing:
            LOGGER.warning("etcd's history can be compacted again")
        self._failing = False

    def _measure(self) -> None:
        for member, etcd in self._members.items():
            try:
                self._told[member] = self._bounded(etcd.status())
            except MetadataError as error:
                if isinstance(error, InvalidError):
                    # It refuses to tell. Of one that is away, what it told last still holds.
                    self._told.pop(member, None)
                if member not in self._unknown:
                    LOGGER.warning("the size of etcd's database is not known: %s", error)
                self._unknown.add(member)
            else:
                self._unknown.discard(member)
        self.fullest = max(self._told.values(), key=_share, default=None)
        self._metrics.etcd = self.fullest

    def _bounded(self, told: MemberStatus) -> MemberStatus:
        """With the quota that holds, which is 0 where there is none."""
        return replace(told, quota_bytes=max(0, told.quota_bytes or self._quota_bytes))

    def _compact(self) -> None:
        """Raises `MetadataError`."""
        mark, now_ms = self._etcd.get(KEY), self._clock.now_ms()
        # A mark that cannot be read, or is of the future, as after a clock was set back, is
        # written anew, and the interval begins again.
        age_ms = -1 if mark is None else _age_ms(mark, now_ms)
        if 0 <= age_ms < self._interval_ms or not self._leads():
            return
        if mark is not None and age_ms >= self._interval_ms and self._etcd.compact(mark.revision):
            self._metrics.count("etcd_compactions")
        written = {"version": VERSION, "written_at_ms": now_ms}
        self._etcd.write({KEY: json.dumps(written).encode()})


def _share(told: MemberStatus) -> tuple[float, int]:
    """How full a member is; of those without a quota, how large."""
    return (told.file_bytes / told.quota_bytes if told.quota_bytes else 0.0), told.file_bytes


def _age_ms(mark: Entry, now_ms: int) -> int:
    """Since when a mark stands; below 0 where that cannot be read."""
    try:
        return now_ms - int(json.loads(mark.value)["written_at_ms"])
    except (ValueError, KeyError, TypeError):
        return -1

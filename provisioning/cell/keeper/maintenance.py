"""Compacts etcd's history and reports its size. Only the keeper that has the cell does so.

etcd keeps every value that a key ever had, until a compaction drops the history before a revision.
The key `keeper/compaction` marks a revision: its own, which was written at the time that its value
says. Once the mark is as old as the interval, all history before it is dropped, and the mark is
written again. So a watcher that is behind by less than the interval misses no change, and another
keeper that takes over continues from the mark.

A compaction frees room within a member's database file and does not make the file smaller. The
quota applies to the file, so the file's size is reported; a defragmentation by `etcdctl` makes it
smaller.
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
# Interval of turns. A compaction that failed is repeated at the next one.
TURN_S = 15.0
# How long one member may take to answer.
TIMEOUT_S = 3.0


class EtcdMaintenance:
    """The maintenance of one cell's etcd.

    Nothing is compacted while `leads` returns False, because another keeper may have the cell.
    `interval_ms` is how much history stays. `quota_bytes` counts for members that do not report
    their own quota.
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
        # One client for each member, because each has a database file of its own.
        self._members = {
            member: Etcd(replace(location, members=(member,)), timeout_s=TIMEOUT_S)
            for member in location.members
        }
        self._metrics = metrics
        self._clock = clock
        self._leads = leads
        self._interval_ms = interval_ms
        self._quota_bytes = quota_bytes
        # The last status of each member, and the members whose size the last turn could not get.
        self._reported: dict[str, MemberStatus] = {}
        self._unknown: set[str] = set()
        self._failing = False
        self.fullest: MemberStatus | None = None

    async def run(self) -> None:
        """Takes turns until it is cancelled. No failure ends it."""
        while True:
            try:
                await asyncio.to_thread(self.take_turn)
            except Exception:
                # The next turn repeats it; nothing else would start this task again.
                LOGGER.exception("etcd's maintenance failed")
            await asyncio.sleep(min(TURN_S, self._interval_ms / 1000))

    def take_turn(self) -> None:
        """Reads the sizes of all members, and compacts the history where the mark is old enough."""
        self._measure_members()
        try:
            self._compact_history()
        except MetadataError as error:
            self._metrics.count("etcd_compaction_failures")
            if not self._failing:
                LOGGER.error("etcd's history is not compacted: %s", error)
            self._failing = True
            return
        if self._failing:
            LOGGER.warning("etcd's history can be compacted again")
        self._failing = False

    def _measure_members(self) -> None:
        for member, etcd in self._members.items():
            try:
                self._reported[member] = self._with_quota(etcd.status())
            except MetadataError as error:
                if isinstance(error, InvalidError):
                    # It refuses to report its size, so the last one is dropped. The last size of a
                    # member that is away still counts.
                    self._reported.pop(member, None)
                if member not in self._unknown:
                    LOGGER.warning("the size of etcd's database is not known: %s", error)
                self._unknown.add(member)
            else:
                self._unknown.discard(member)
        self.fullest = max(self._reported.values(), key=_fullness, default=None)
        self._metrics.etcd = self.fullest

    def _with_quota(self, status: MemberStatus) -> MemberStatus:
        """The status with the quota that applies: the member's own or the setting; 0 means none."""
        return replace(status, quota_bytes=max(0, status.quota_bytes or self._quota_bytes))

    def _compact_history(self) -> None:
        """Compacts to the mark where it is as old as the interval. Raises `MetadataError`."""
        mark, now_ms = self._etcd.get(KEY), self._clock.now_ms()
        # A mark that cannot be read, or is of the future because a clock was set back, is written
        # again, and the interval begins again.
        age_ms = -1 if mark is None else _age_ms(mark, now_ms)
        if 0 <= age_ms < self._interval_ms or not self._leads():
            return
        if mark is not None and age_ms >= self._interval_ms and self._etcd.compact(mark.revision):
            self._metrics.count("etcd_compactions")
        written = {"version": VERSION, "written_at_ms": now_ms}
        self._etcd.write({KEY: json.dumps(written).encode()})


def _fullness(status: MemberStatus) -> tuple[float, int]:
    """The key for the fullest member: the part of its quota that its file takes, then its size."""
    return (
        status.file_bytes / status.quota_bytes if status.quota_bytes else 0.0
    ), status.file_bytes


def _age_ms(mark: Entry, now_ms: int) -> int:
    """The age of a mark; negative where it cannot be read."""
    try:
        return now_ms - int(json.loads(mark.value)["written_at_ms"])
    except (ValueError, KeyError, TypeError):
        return -1

"""Watches the health of all clusters of a cell together: reports it, and holds deletions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from provisioning.cell.drivers.base import Answer
from provisioning.cell.keeper.cluster import DRIVER_TIMEOUT_S, CellParts, ClusterTask
from provisioning.cell.keeper.guard import Guard, guard_after
from provisioning.cell.keeper.health import health_of_cell, with_damage
from provisioning.cell.keeper.records import StoreError
from provisioning.cell.notes import CellHealth

LOGGER = logging.getLogger(__name__)

# Health that did not change is reported again after this time, so that an old report means that the
# keeper is away.
REPORT_AGAIN_MS = 15_000


class Watchman:
    """The watchman of one cell. A report that could not be written is written at the next look."""

    def __init__(self, cell: CellParts) -> None:
        self._cell = cell
        self._reported: CellHealth | None = None
        # Whether the platform was last asked to hold deletions; None where that is not known.
        self._holds: bool | None = None

    async def look(self, clusters: Sequence[ClusterTask]) -> None:
        """Looks once: updates the guard, holds or allows deletions, and reports the health."""
        cell, now_ms = self._cell, self._cell.clock.now_ms()
        if not cell.watch.known:
            await self._read_earlier_guard()
        beats = [cluster.beat() for cluster in clusters]
        platform = cell.driver.unwell() or ""
        if not platform and all(beat.known for beat in beats):
            before = cell.watch.guard
            cell.watch.guard = guard_after(
                before,
                expected=sum(beat.expected for beat in beats),
                unhealthy=sum(beat.unhealthy for beat in beats),
                now_ms=now_ms,
                rules=cell.guard_rules,
            )
            if before.held and not cell.watch.guard.held:
                for cluster in clusters:
                    cluster.poke()
        orphans = [cluster.cluster_id for cluster in clusters if cluster.orphaned]
        health = health_of_cell(
            beats,
            cell.watch.guard,
            platform=platform,
            orphans=orphans,
            now_ms=now_ms,
            etcd=None if cell.maintenance is None else cell.maintenance.fullest,
        )
        damaged = {cluster.cluster_id: cluster.damaged for cluster in clusters}
        health = with_damage(health, damaged)
        await self._hold_deletions(health)
        await self._report_health(health)

    async def _read_earlier_guard(self) -> None:
        """Continues to hold deletions where the keeper before this one did."""
        try:
            before = await self._cell.store.health()
        except StoreError:
            return
        self._cell.watch.known = True
        if before is not None and before.held:
            self._cell.watch.guard = Guard(held=True)

    async def _hold_deletions(self, health: CellHealth) -> None:
        if self._holds is health.held:
            return
        held = health.held
        try:
            async with asyncio.timeout(DRIVER_TIMEOUT_S):
                outcome = await self._cell.driver.hold_deletions(held=held, reason=health.reason)
        except (OSError, TimeoutError) as error:
            LOGGER.warning("deletions could not be held or allowed: %s", error)
            return
        if outcome.answer is not Answer.ACCEPTED:
            LOGGER.warning("deletions could not be held or allowed: %s", outcome.message)
            return
        if held or self._holds is not None:
            LOGGER.warning("deletions are %s", f"held: {health.reason}" if held else "allowed")
        self._holds = held

    async def _report_health(self, health: CellHealth) -> None:
        reported = self._reported
        if reported is not None and health.told_at_ms - reported.told_at_ms < REPORT_AGAIN_MS:
            # Within the interval a change of how many brokers should run is not reported: it
            # changes all the time, and no rule waits for it.
            known = replace(reported, told_at_ms=health.told_at_ms, wanted=health.wanted)
            if reported.etcd_file_bytes and health.etcd_file_bytes:
                # Nor is the size of etcd, which grows with each of these writes too.
                known = replace(
                    known,
                    etcd_file_bytes=health.etcd_file_bytes,
                    etcd_in_use_bytes=health.etcd_in_use_bytes,
                    etcd_quota_bytes=health.etcd_quota_bytes,
                )
            if health == known:
                return
        try:
            await self._cell.store.put_health(health)
        except StoreError:
            return
        self._reported = health

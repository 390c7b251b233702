"""Looks at all clusters of a cell together, tells how it is, and holds deletions where it must."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from provisioning.cell.drivers.base import Answer
from provisioning.cell.keeper.cluster import DRIVER_TIMEOUT_S, Cell, Cluster
from provisioning.cell.keeper.guard import Guard, guarded
from provisioning.cell.keeper.health import health_of_cell
from provisioning.cell.keeper.records import StoreError
from provisioning.cell.notes import CellHealth

LOGGER = logging.getLogger(__name__)

# Told again after so long, though nothing changed, so that silence can be told from peace.
TOLD_AGAIN_MS = 15_000


class Watchman:
    """One for a cell. What could not be told is told at the next look."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._told: CellHealth | None = None
        # What the platform was told to do; None: not known.
        self._holds: bool | None = None

    async def look(self, clusters: Sequence[Cluster]) -> None:
        """One look, and what follows from it."""
        cell, now_ms = self._cell, self._cell.clock.now_ms()
        if not cell.watch.known:
            await self._go_on()
        beats = [cluster.beat() for cluster in clusters]
        platform = cell.driver.unwell() or ""
        if not platform and all(beat.known for beat in beats):
            before = cell.watch.guard
            cell.watch.guard = guarded(
                before,
                wanted=sum(beat.wanted for beat in beats),
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
        await self._hold(health)
        await self._tell(health)

    async def _go_on(self) -> None:
        """A keeper before this one may have held deletions."""
        try:
            before = await self._cell.store.health()
        except StoreError:
            return
        self._cell.watch.known = True
        if before is not None and before.held:
            self._cell.watch.guard = Guard(held=True)

    async def _hold(self, health: CellHealth) -> None:
        if self._holds is health.held:
            return
        held = health.held
        try:
            async with asyncio.timeout(DRIVER_TIMEOUT_S):
                outcome = await self._cell.driver.hold_deletions(held=held, reason=health.reason)
        except (OSError, TimeoutError) as error:
            LOGGER.warning("deletions: %s", error)
            return
        if outcome.answer is not Answer.ACCEPTED:
            LOGGER.warning("deletions: %s", outcome.message)
            return
        if held or self._holds is not None:
            LOGGER.warning("deletions are %s", f"held: {health.reason}" if held else "allowed")
        self._holds = held

    async def _tell(self, health: CellHealth) -> None:
        told = self._told
        if told is not None and health.told_at_ms - told.told_at_ms < TOLD_AGAIN_MS:
            # How many are unhealthy follows what happens; how many should run is nobody's hurry.
            known = replace(told, told_at_ms=health.told_at_ms, wanted=health.wanted)
            if told.etcd_file_bytes and health.etcd_file_bytes:
                # Nor is by how much etcd grew, which it does with each of these writes too.
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
        self._told = health

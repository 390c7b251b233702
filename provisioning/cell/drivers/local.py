"""The driver of a cell that has one machine: it runs brokers as processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from provisioning.cell.drivers.base import (
    ACCEPTED,
    Answer,
    ClusterObservation,
    ClusterPlan,
    Outcome,
)
from provisioning.cell.drivers.files import SlotFiles, cluster_folder, slots_in
from provisioning.cell.drivers.process import find_processes
from provisioning.cell.drivers.slot import LocalOptions, Slot

LOGGER = logging.getLogger(__name__)

# Interval at which the logs of all brokers are read.
LOG_LOOK_S = 0.5
# How long `remove` waits for killed processes. They end within milliseconds unless the kernel
# hangs.
KILL_S = 10.0


class LocalDriver:
    """Runs brokers as `python -m brokers serve`, each with a folder of its own under `run`."""

    def __init__(self, run: Path, options: LocalOptions | None = None) -> None:
        # Absolute, because a broker is also recognised by the path of its settings file.
        self._run = run.absolute()
        self._options = options or LocalOptions()
        self._slots: dict[str, dict[int, Slot]] = {}
        self._restarts: dict[str, int] = {}
        self._logs: asyncio.Task[None] | None = None
        self._notify: Callable[[str], None] = lambda _cluster_id: None

    def notify(self, call: Callable[[str], None]) -> None:
        """See `Driver.notify`."""
        self._notify = call

    async def start(self) -> None:
        """Takes over the brokers that run. Raises `OSError` where the folder cannot be created."""
        self._run.mkdir(mode=0o700, parents=True, exist_ok=True)
        unknown = {}
        for cluster_id, number in slots_in(self._run):
            slot = self._slot_of(cluster_id, number)
            if identity := slot.surviving_process():
                slot.adopt(identity)
            else:
                unknown[str(SlotFiles.of(self._run, cluster_id, number).settings)] = slot
        if unknown:
            for settings, identity in find_processes(self._options.command[-1], unknown).items():
                unknown[settings].adopt(identity)
        for cluster_id in list(self._slots):
            self._forget_gone(cluster_id)
        self._logs = asyncio.create_task(self._look_at_logs(), name="logs of brokers")

    async def close(self) -> None:
        """Stops the driver. Brokers that run go on."""
        if self._logs is not None:
            self._logs.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._logs
        for slots in self._slots.values():
            for slot in slots.values():
                await slot.release()
        self._slots.clear()

    def unwell(self) -> str | None:
        """See `Driver.unwell`."""
        return None

    async def hold_deletions(self, *, held: bool, reason: str) -> Outcome:
        """See `Driver.hold_deletions`. It does nothing: only the keeper deletes anything here."""
        return ACCEPTED

    async def clusters(self) -> frozenset[str]:
        """The clusters that have a folder or a process."""
        return frozenset(self._slots) | {cluster_id for cluster_id, _ in slots_in(self._run)}

    async def apply(self, plan: ClusterPlan) -> Outcome:
        """See `Driver.apply`."""
        try:
            cluster_folder(self._run, plan.cluster_id)
        except ValueError as error:
            return Outcome(Answer.REFUSED, str(error))
        for broker in plan.brokers:
            self._slot_of(plan.cluster_id, broker.slot).keep_running(broker)
        planned = {broker.slot for broker in plan.brokers}
        for number, slot in self._slots[plan.cluster_id].items():
            if number not in planned:
                slot.stop(clean=True)
        return ACCEPTED

    async def observe(self, cluster_id: str) -> ClusterObservation:
        """See `Driver.observe`."""
        self._forget_gone(cluster_id)
        slots = self._slots.get(cluster_id, {})
        return ClusterObservation(
            cluster_id,
            tuple(slot.observe() for _, slot in sorted(slots.items())),
            self._restarts.get(cluster_id, 0) + sum(slot.restarts for slot in slots.values()),
        )

    async def stop(self, cluster_id: str, *, clean: bool) -> Outcome:
        """See `Driver.stop`."""
        for slot in self._slots.get(cluster_id, {}).values():
            slot.stop(clean=clean)
        return ACCEPTED

    async def replace(self, cluster_id: str, slot: int) -> Outcome:
        """See `Driver.replace`."""
        running = self._slots.get(cluster_id, {}).get(slot)
        if running is None:
            return Outcome(Answer.REFUSED, f"no broker of {cluster_id} in slot {slot}")
        running.replace()
        return ACCEPTED

    async def remove(self, cluster_id: str, *, break_glass: str = "") -> Outcome:
        """See `Driver.remove`. Returns once the processes have ended and the folder is removed."""
        try:
            folder = cluster_folder(self._run, cluster_id)
        except ValueError as error:
            return Outcome(Answer.REFUSED, str(error))
        await self.stop(cluster_id, clean=False)
        gone = [slot.wait_gone() for slot in self._slots.get(cluster_id, {}).values()]
        try:
            async with asyncio.timeout(KILL_S):
                await asyncio.gather(*gone)
            await asyncio.to_thread(_remove_tree, folder)
        except (TimeoutError, OSError) as error:
            return Outcome(Answer.UNKNOWN, f"{cluster_id} is not removed yet: {error}")
        self._forget_gone(cluster_id)
        self._restarts.pop(cluster_id, None)
        return ACCEPTED

    def _slot_of(self, cluster_id: str, number: int) -> Slot:
        slots = self._slots.setdefault(cluster_id, {})
        if number not in slots:
            files = SlotFiles.of(self._run, cluster_id, number)
            slots[number] = Slot(number, files, self._options, lambda: self._notify(cluster_id))
        return slots[number]

    def _forget_gone(self, cluster_id: str) -> None:
        slots = self._slots.get(cluster_id, {})
        for number in [number for number, slot in slots.items() if slot.gone]:
            restarts = slots.pop(number).restarts
            self._restarts[cluster_id] = self._restarts.get(cluster_id, 0) + restarts
        if not slots:
            self._slots.pop(cluster_id, None)

    async def _look_at_logs(self) -> None:
        while True:
            await asyncio.sleep(LOG_LOOK_S)
            for slot in [slot for slots in self._slots.values() for slot in slots.values()]:
                slot.look_at_log()


def _remove_tree(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)

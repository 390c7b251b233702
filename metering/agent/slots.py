"""The chain of a cluster's slots. The first agent to store a window's slot decides its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from metering.events.errors import UsageFormatError
from metering.events.keys import slot_key
from metering.events.records import Meter
from metering.events.slots import Slot, SlotRow, encode_slot, parse_slot
from metering.events.store import UsageStore
from metering.events.times import HOUR_MS, floor_to

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BrokerLife:
    """The time [started, until) in which a broker ran."""

    incarnation: int
    started_at_ms: int
    until_ms: int


def window_end(start_ms: int, limit_ms: int, step_ms: int) -> int | None:
    """The end of the window that starts at `start_ms`; None where none can be measured yet.

    It ends with its hour, or at the last multiple of `step_ms` (a whole part of an hour) that is
    not after `limit_ms`.
    """
    end = min(floor_to(start_ms, HOUR_MS) + HOUR_MS, floor_to(limit_ms, step_ms))
    return end if end > start_ms else None


def broker_rows(window: Span, lives: Iterable[BrokerLife]) -> Iterator[SlotRow]:
    """Rows with the whole seconds for which brokers ran within a window. They are not billed."""
    for life in lives:
        start, end = max(window[0], life.started_at_ms), min(window[1], life.until_ms)
        if end - start >= 1000:
            yield SlotRow(
                meter=Meter.BROKER_SECONDS,
                incarnation=life.incarnation,
                quantity=(end - start) // 1000,
                billed=False,
            )


@dataclass(frozen=True, slots=True)
class SlotChain:
    """A cluster's slots in the store."""

    store: UsageStore
    cell: str
    cluster_id: str

    def follow(
        self,
        start_ms: int,
        *,
        limit_ms: int,
        step_ms: int,
        make: Callable[[Span], Iterable[SlotRow]],
    ) -> Iterator[Slot]:
        """The slots from `start_ms` on: first the stored ones, then those that can be made now.

        `make` returns the rows of a window. Raises `OSError`, and `UsageFormatError` where a slot
        is damaged: nobody can continue then without contradicting the rows that came from it.
        """
        position = start_ms
        while True:
            slot = self._read_slot(position)
            if slot is None:
                end = window_end(position, limit_ms, step_ms)
                if end is None:
                    return
                slot = self._make_slot((position, end), make)
            yield slot
            position = slot.window_end_ms

    def _make_slot(self, window: Span, make: Callable[[Span], Iterable[SlotRow]]) -> Slot:
        start, end = window
        slot = Slot(
            cell=self.cell,
            cluster_id=self.cluster_id,
            window_start_ms=start,
            window_end_ms=end,
            rows=tuple(sorted(make(window))),
        )
        if self.store.put_new(slot_key(self.cell, self.cluster_id, start), encode_slot(slot)):
            return slot
        other = self._read_slot(start)
        if other is None:
            message = (
                f"the usage store refuses a slot of {self.cluster_id} from {start} on as existing,"
                " and has none"
            )
            raise OSError(message)
        return other

    def _read_slot(self, start_ms: int) -> Slot | None:
        try:
            slot = parse_slot(self.store.get(slot_key(self.cell, self.cluster_id, start_ms)))
        except FileNotFoundError:
            return None
        identity = (slot.cell, slot.cluster_id, slot.window_start_ms)
        if identity != (self.cell, self.cluster_id, start_ms):
            message = f"the slot of {self.cluster_id} from {start_ms} on is one of {identity}"
            raise UsageFormatError(message)
        return slot

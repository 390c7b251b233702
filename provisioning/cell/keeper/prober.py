"""Reads the status of a cluster's brokers: whether they answer, and what they say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from console.base.runtime.clock import Clock
from provisioning.cell.drivers.base import BrokerObservation, BrokerState
from provisioning.cell.keeper.decide import Reading
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.status.picture import Damage, Picture, damaged_in
from provisioning.cell.status.reader import StatusReader, read_times


@dataclass(frozen=True)
class ProbeTarget:
    """A broker whose status is read at `metrics` (`host:port`).

    Each process of a slot has its own name.
    """

    slot: int
    name: str
    metrics: str


@dataclass(frozen=True)
class Pace:
    """The interval of readings and the time limit of one, in seconds."""

    interval_s: float
    timeout_s: float


class Prober:
    """Reads the status of the brokers that `look_at` was given, and calls `seen` each time."""

    def __init__(
        self, clock: Clock, metrics: Metrics, pace: Pace, seen: Callable[[], None]
    ) -> None:
        self.reading: Reading | None = None
        self._damaged: tuple[Damage, ...] | None = None
        self._clock = clock
        self._metrics = metrics
        self._pace = pace
        self._seen = seen
        self._readers: dict[ProbeTarget, StatusReader] = {}
        self._unanswered: dict[ProbeTarget, int] = {}
        self._soon = asyncio.Event()

    @property
    def unanswered(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a slot and how often in a row its broker did not answer, sorted by slot."""
        return tuple(sorted((target.slot, count) for target, count in self._unanswered.items()))

    @property
    def damaged(self) -> tuple[Damage, ...] | None:
        """The damaged batches that brokers knew last, which may be those of earlier brokers.

        None where brokers run, and not all of them have ever answered.
        """
        return () if self._damaged is None and not self._readers else self._damaged

    def look_at(self, brokers: Sequence[BrokerObservation]) -> None:
        """Sets the brokers to read from: those of `brokers` that serve."""
        targets = [
            ProbeTarget(broker.slot, broker.name, broker.endpoints.metrics)
            for broker in brokers
            if broker.state is BrokerState.RUNNING and broker.endpoints and broker.endpoints.metrics
        ]
        if targets == list(self._readers):
            return
        readers = {t: self._readers.pop(t, StatusReader(t.metrics, t.slot)) for t in targets}
        self._close()
        self._readers = readers
        # The last reading was of other brokers.
        self.reading = None
        self._unanswered = {t: self._unanswered.get(t, 0) for t in targets}
        self._soon.set()

    def forget(self, slot: int) -> None:
        """Resets the count of how often the broker of a slot did not answer."""
        self._unanswered |= {target: 0 for target in self._unanswered if target.slot == slot}

    def soon(self) -> None:
        """Starts the next round now."""
        self._soon.set()

    async def pictures_now(self) -> tuple[Picture, ...] | None:
        """Reads from all brokers now. None where one of them does not answer, or not with all."""
        readers = self._readers

        async def read() -> bool:
            return all(await self._read_all(readers))

        answered = await read()
        pictures = [reader.picture for reader in readers.values()]
        for picture in pictures:
            # Those of the last time are of where groups were then.
            picture.times.forget()
        answered = answered and await read_times(pictures, read)
        complete = answered and all(picture.complete for picture in pictures)
        return tuple(pictures) if complete and readers is self._readers else None

    async def run(self) -> None:
        """Reads at the interval, until it is cancelled."""
        try:
            while True:
                self._soon.clear()
                if self._readers:
                    await self._probe_round(self._readers)
                # Without a broker there is nothing to read until `look_at` sets one.
                timeout = self._pace.interval_s if self._readers else None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(timeout):
                        await self._soon.wait()
        finally:
            self._close()

    async def _probe_round(self, readers: Mapping[ProbeTarget, StatusReader]) -> None:
        taken_ms = self._clock.now_ms()
        answers = await self._read_all(readers)
        if readers is not self._readers:
            return
        for target, answered in zip(readers, answers, strict=True):
            self._unanswered[target] = 0 if answered else self._unanswered[target] + 1
        pictures = [reader.picture for reader in readers.values()]
        if all(answers):
            self._damaged = damaged_in(pictures)
        counts = [
            picture.connections if answered else None
            for picture, answered in zip(pictures, answers, strict=True)
        ]
        counted = sum(count for count in counts if count is not None)
        self.reading = Reading(taken_ms, None if None in counts else counted, counted)
        self._seen()

    async def _read_all(self, readers: Mapping[ProbeTarget, StatusReader]) -> list[bool]:
        timeout_s = self._pace.timeout_s
        before = sum(reader.bytes_moved for reader in readers.values())
        answers = await asyncio.gather(
            *(reader.read(timeout_s=timeout_s) for reader in readers.values())
        )
        moved = sum(reader.bytes_moved for reader in readers.values()) - before
        self._metrics.count("status_bytes", moved)
        self._metrics.count("scrapes", len(answers))
        self._metrics.count("scrape_failures", answers.count(False))
        return answers

    def _close(self) -> None:
        for reader in self._readers.values():
            reader.close()

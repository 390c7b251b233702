"""Scrapes the brokers of one cluster: whether they answer, and how many clients are connected."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console.base.runtime.clock import Clock
from provisioning.cell.drivers.base import BrokerObservation, BrokerState
from provisioning.cell.keeper.decide import Reading
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.probe import connections_in, damaged_in, scrape_metrics


@dataclass(frozen=True)
class ProbeTarget:
    """A broker that is scraped at `metrics` (`host:port`).

    Each process of a slot has its own name.
    """

    slot: int
    name: str
    metrics: str


@dataclass(frozen=True)
class Pace:
    """The interval of scrapes and the time limit of one, in seconds."""

    interval_s: float
    timeout_s: float


class Prober:
    """Scrapes the brokers that `look_at` was given, at an interval, and calls `seen` each time."""

    def __init__(
        self, clock: Clock, metrics: Metrics, pace: Pace, seen: Callable[[], None]
    ) -> None:
        self.reading: Reading | None = None
        # The metrics of each broker, from the last round in which all of them answered.
        self.pages: tuple[bytes, ...] = ()
        self._damaged: tuple[tuple[str, int, int], ...] | None = None
        self._clock = clock
        self._metrics = metrics
        self._pace = pace
        self._seen = seen
        self._targets: tuple[ProbeTarget, ...] = ()
        self._unanswered: dict[ProbeTarget, int] = {}
        self._soon = asyncio.Event()

    @property
    def unanswered(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a slot and how often in a row its broker did not answer, sorted by slot."""
        return tuple(sorted((target.slot, count) for target, count in self._unanswered.items()))

    @property
    def damaged(self) -> tuple[tuple[str, int, int], ...] | None:
        """The damaged batches in the last metrics, which may be those of earlier brokers.

        None where brokers run, and not all of them have ever answered.
        """
        return () if self._damaged is None and not self._targets else self._damaged

    def look_at(self, brokers: Sequence[BrokerObservation]) -> None:
        """Sets the brokers to scrape: those of `brokers` that serve."""
        targets = tuple(
            ProbeTarget(broker.slot, broker.name, broker.endpoints.metrics)
            for broker in brokers
            if broker.state is BrokerState.RUNNING and broker.endpoints and broker.endpoints.metrics
        )
        if targets != self._targets:
            self._targets = targets
            # The last reading was of other brokers.
            self.reading = None
            self.pages = ()
            self._unanswered = {t: self._unanswered.get(t, 0) for t in targets}
            self._soon.set()

    def forget(self, slot: int) -> None:
        """Resets the count of how often the broker of a slot did not answer."""
        self._unanswered |= {target: 0 for target in self._unanswered if target.slot == slot}

    def soon(self) -> None:
        """Starts the next round now."""
        self._soon.set()

    async def pages_now(self) -> tuple[bytes, ...]:
        """Scrapes all brokers now.

        Returns the last complete round where one of them does not answer.
        """
        answers = await self._scrape_all(self._targets)
        return self.pages if None in answers else tuple(filter(None, answers))

    async def run(self) -> None:
        """Scrapes at the interval, until it is cancelled."""
        while True:
            self._soon.clear()
            if self._targets:
                await self._probe_round(self._targets)
            # Without a broker there is nothing to scrape until `look_at` sets one.
            timeout = self._pace.interval_s if self._targets else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._soon.wait()

    async def _probe_round(self, targets: tuple[ProbeTarget, ...]) -> None:
        taken_ms = self._clock.now_ms()
        answers = await self._scrape_all(targets)
        if targets != self._targets:
            return
        counts = []
        for target, answer in zip(targets, answers, strict=True):
            self._unanswered[target] = 0 if answer is not None else self._unanswered[target] + 1
            counts.append(None if answer is None else connections_in(answer))
        pages = tuple(answer for answer in answers if answer is not None)
        if len(pages) == len(targets):
            self.pages = pages
            self._damaged = damaged_in(pages)
        total = None if None in counts else sum(count for count in counts if count is not None)
        self.reading = Reading(taken_ms, total)
        self._seen()

    async def _scrape_all(self, targets: tuple[ProbeTarget, ...]) -> list[bytes | None]:
        timeout_s = self._pace.timeout_s
        answers = await asyncio.gather(
            *(scrape_metrics(t.metrics, timeout_s=timeout_s) for t in targets)
        )
        self._metrics.count("scrapes", len(answers))
        self._metrics.count("scrape_failures", answers.count(None))
        return answers

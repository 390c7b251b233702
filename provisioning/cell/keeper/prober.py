"""Looks at the brokers of one cluster again and again: do they answer, who is connected."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console.base.runtime.clock import Clock
from provisioning.cell.drivers.base import BrokerObservation, BrokerState
from provisioning.cell.keeper.decide import Reading
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.probe import connections_in, scrape


@dataclass(frozen=True)
class Target:
    """A broker that is looked at. Another one in its slot has another name."""

    slot: int
    name: str
    metrics: str


@dataclass(frozen=True)
class Pace:
    """How often brokers are looked at, and how long they may take, in seconds."""

    interval_s: float
    timeout_s: float


class Prober:
    """Scrapes whatever `look_at` named, at a steady pace, and calls `seen` after each round."""

    def __init__(
        self, clock: Clock, metrics: Metrics, pace: Pace, seen: Callable[[], None]
    ) -> None:
        self.reading: Reading | None = None
        # What each broker answered in the last round in which all of them did.
        self.pages: tuple[bytes, ...] = ()
        self._clock = clock
        self._metrics = metrics
        self._pace = pace
        self._seen = seen
        self._targets: tuple[Target, ...] = ()
        self._unanswered: dict[Target, int] = {}
        self._soon = asyncio.Event()

    @property
    def unanswered(self) -> tuple[tuple[int, int], ...]:
        """By slot, how often in a row its broker did not answer."""
        return tuple(sorted((target.slot, count) for target, count in self._unanswered.items()))

    def look_at(self, brokers: Sequence[BrokerObservation]) -> None:
        """Names the brokers; those that serve are looked at."""
        targets = tuple(
            Target(broker.slot, broker.name, broker.endpoints.metrics)
            for broker in brokers
            if broker.state is BrokerState.RUNNING and broker.endpoints and broker.endpoints.metrics
        )
        if targets != self._targets:
            self._targets = targets
            # What another broker said is no reading of this one.
            self.reading = None
            self.pages = ()
            self._unanswered = {t: self._unanswered.get(t, 0) for t in targets}
            self._soon.set()

    def forget(self, slot: int) -> None:
        """Counts anew how often the broker of a slot does not answer."""
        self._unanswered |= {target: 0 for target in self._unanswered if target.slot == slot}

    def soon(self) -> None:
        """Looks now instead of at the next turn."""
        self._soon.set()

    async def pages_now(self) -> tuple[bytes, ...]:
        """What each broker answers now; what they answered last where one of them does not."""
        answers = await self._ask(self._targets)
        return self.pages if None in answers else tuple(filter(None, answers))

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._soon.clear()
            if self._targets:
                await self._round(self._targets)
            # While there is nobody to look at, nothing is to be done until there is.
            timeout = self._pace.interval_s if self._targets else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._soon.wait()

    async def _round(self, targets: tuple[Target, ...]) -> None:
        taken_ms = self._clock.now_ms()
        answers = await self._ask(targets)
        if targets != self._targets:
            return
        counts = []
        for target, answer in zip(targets, answers, strict=True):
            self._unanswered[target] = 0 if answer is not None else self._unanswered[target] + 1
            counts.append(None if answer is None else connections_in(answer))
        pages = tuple(answer for answer in answers if answer is not None)
        if len(pages) == len(targets):
            self.pages = pages
        total = None if None in counts else sum(count for count in counts if count is not None)
        self.reading = Reading(taken_ms, total)
        self._seen()

    async def _ask(self, targets: tuple[Target, ...]) -> list[bytes | None]:
        timeout_s = self._pace.timeout_s
        answers = await asyncio.gather(*(scrape(t.metrics, timeout_s=timeout_s) for t in targets))
        self._metrics.count("scrapes", len(answers))
        self._metrics.count("scrape_failures", answers.count(None))
        return answers

"""Keeps workers from waiting, task after task, for something that does not answer.

What hung for one task most likely hangs for the next. So a process that waited in vain does not ask
again for `AWAY_S` seconds, and then only if no task of another worker is trying at this moment.
Once each process has waited once, what hangs takes the time of one task at most, however many tasks
ask for it; all others go on.

Requests ask always: `waiting.py` limits how many of them wait.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from console.base.common.concurrency import Count, TooManyAtOnce, concurrency

logger = logging.getLogger(__name__)

AWAY_S = 5.0
# What fails sooner takes nobody's time, and is asked again.
HUNG_S = 1.0
# How long the try of a process that died keeps others from trying: longer than one takes.
TRY_S = 30.0


class Answering:
    """Remembers, in one process, whether something answers.

    `failures` are the errors of `asking`'s block which say that it did not. `refusal` makes the
    error for a task that does not ask.
    """

    def __init__(
        self,
        name: str,
        *,
        failures: tuple[type[Exception], ...],
        refusal: Callable[[], Exception],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._failures = failures
        self._refusal = refusal
        self._clock = clock
        # When it may be asked again; None while it answers.
        self._away_until: float | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Runs a block that asks. Raises the refusal where it did not answer a moment ago."""
        if self._away_until is None:
            with self._noting():
                yield
            return
        if self._clock() < self._away_until:
            raise self._refusal()
        try:
            place = concurrency().take([Count("tries", self._name, 1)], lasts_s=TRY_S)
        except TooManyAtOnce as error:
            raise self._refusal() from error
        try:
            with self._noting():
                yield
        finally:
            place.give_back()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        began = self._clock()
        try:
            yield
        except self._failures:
            if self._clock() - began >= HUNG_S:
                self._away_until = self._clock() + AWAY_S
                logger.warning("away.noted name=%s", self._name)
            raise
        self._away_until = None

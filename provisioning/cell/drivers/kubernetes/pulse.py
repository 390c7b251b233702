"""Asks at an interval whether the API server answers: a watch does not notice a silent peer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from provisioning.cell.drivers.kubernetes.api import ApiError, Lost

LOGGER = logging.getLogger(__name__)

INTERVAL_S = 3.0
# After so many calls in a row without an answer the API server counts as away.
MISSED_MAX = 2


class Pulse:
    """Calls `beat`, which raises `Lost` where no answer comes. A refusal is an answer too."""

    def __init__(
        self,
        beat: Callable[[], Awaitable[object]],
        asked: Callable[[], None] = lambda: None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """`asked` is called after each call of `beat`."""
        # Why the API server counts as away; None where it answers.
        self.failure: str | None = None
        self._beat = beat
        self._asked = asked
        self._interval_s = interval_s
        self._missed = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts to ask at the interval."""
        self._task = asyncio.create_task(self._run(), name="pulse of Kubernetes")

    async def close(self) -> None:
        """Stops asking."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def ask(self) -> None:
        """Asks once, and notes the result in `failure`."""
        try:
            await self._beat()
        except Lost as error:
            self._missed += 1
            if self._missed == MISSED_MAX:
                LOGGER.error("the API server does not answer: %s", error)
            if self._missed >= MISSED_MAX:
                self.failure = str(error)
            return
        except ApiError as error:
            LOGGER.debug("the API server refuses: %s", error)
        if self.failure is not None:
            LOGGER.warning("the API server answers again")
        self._missed, self.failure = 0, None

    async def _run(self) -> None:
        while True:
            await self.ask()
            self._asked()
            await asyncio.sleep(self._interval_s)

"""Does the API server answer? Asked again and again: a watch whose peer is silent does not tell."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from provisioning.cell.drivers.kubernetes.api import ApiError, Lost

LOGGER = logging.getLogger(__name__)

INTERVAL_S = 3.0
# So many in a row that are not answered are no accident.
MISSED_MAX = 2


class Pulse:
    """Asks by `beat`, which raises `Lost` where nobody answers; a refusal is an answer too."""

    def __init__(
        self,
        beat: Callable[[], Awaitable[object]],
        asked: Callable[[], None] = lambda: None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """`asked` is called after each time."""
        # Why the API server counts as away; None: it does not.
        self.trouble: str | None = None
        self._beat = beat
        self._asked = asked
        self._interval_s = interval_s
        self._missed = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to ask."""
        self._task = asyncio.create_task(self._run(), name="pulse of Kubernetes")

    async def close(self) -> None:
        """Asks no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def ask(self) -> None:
        """Once."""
        try:
            await self._beat()
        except Lost as error:
            self._missed += 1
            if self._missed == MISSED_MAX:
                LOGGER.error("the API server does not answer: %s", error)
            if self._missed >= MISSED_MAX:
                self.trouble = str(error)
            return
        except ApiError as error:
            LOGGER.debug("the API server refuses: %s", error)
        if self.trouble is not None:
            LOGGER.warning("the API server answers again")
        self._missed, self.trouble = 0, None

    async def _run(self) -> None:
        while True:
            await self.ask()
            self._asked()
            await asyncio.sleep(self._interval_s)

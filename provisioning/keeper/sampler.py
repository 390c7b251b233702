"""Takes samples of a cluster's groups, in a thread, one at a time, and never for long.

A sample is what people see of a cluster that sleeps: its groups with their lag as they were.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from provisioning.keeper.clock import Clock
from provisioning.keeper.metrics import Metrics
from provisioning.keeper.records import StoreError
from provisioning.keeper.store import AsyncStore

LOGGER = logging.getLogger(__name__)

# Bootstrap servers, user name and password in; groups as JSON out. May raise anything, and wait.
SampleGroups = Callable[[str, str, str], Sequence[Mapping[str, object]]]

# A metadata record takes 768 KiB.
CONTENT_BYTES_MAX = 700 * 1024
# Sampling takes at most this share of the time, on a cluster where it is slow.
PAUSE_PER_DURATION = 10


class Sampler:
    """Samples one cluster. `done` is called after each attempt."""

    def __init__(  # noqa: PLR0913 (its surroundings, all of them needed)
        self,
        cluster_id: str,
        take: Callable[[str], Sequence[Mapping[str, object]]],
        *,
        store: AsyncStore,
        clock: Clock,
        metrics: Metrics,
        timeout_s: float,
        done: Callable[[], None],
    ) -> None:
        # When the last finished attempt began, and the earliest time for the next unasked one.
        self.attempted_ms = 0
        self.next_ms = 0
        self._cluster_id = cluster_id
        self._take = take
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._timeout_s = timeout_s
        self._done = done
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._stored: object = None

    def start(self, bootstrap: str) -> None:
        """Begins a sample, unless one is on its way."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._attempt(bootstrap))

    async def close(self) -> None:
        """Waits for nobody."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _attempt(self, bootstrap: str) -> None:
        began_ms = self._clock.now_ms()
        try:
            async with asyncio.timeout(self._timeout_s):
                groups = await self._in_thread(bootstrap)
            content = bounded({"groups": list(groups), "topics": {}})
            if content != self._stored:
                await self._store.put_sample(self._cluster_id, began_ms, content)
                self._stored = content
            self._metrics.count("samples")
        except StoreError:
            self._metrics.count("sample_failures")
        except Exception as error:  # a Kafka client's errors are of many kinds
            self._metrics.count("sample_failures")
            LOGGER.info("%s: no sample: %s", self._cluster_id, str(error) or type(error).__name__)
        finally:
            took_ms = self._clock.now_ms() - began_ms
            self.next_ms = self._clock.now_ms() + PAUSE_PER_DURATION * took_ms
            self.attempted_ms = began_ms
            self._done()

    async def _in_thread(self, bootstrap: str) -> Sequence[Mapping[str, object]]:
        """In a thread that may outlive the wait and the keeper, unlike a pool's."""
        if self._thread is not None and self._thread.is_alive():
            message = "the one before hangs"
            raise TimeoutError(message)
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Sequence[Mapping[str, object]]] = loop.create_future()

        def settle(set_it: Callable[[], None]) -> None:
            if not result.done():
                set_it()

        def take() -> None:
            try:
                groups = self._take(bootstrap)
            except Exception as error:  # handed over to whoever waits
                failure = error
                then = lambda: result.set_exception(failure)  # noqa: E731
            else:
                then = lambda: result.set_result(groups)  # noqa: E731
            with contextlib.suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(settle, then)

        name = f"sample-{self._cluster_id}"
        self._thread = threading.Thread(target=take, name=name, daemon=True)
        self._thread.start()
        return await result


def bounded(content: Mapping[str, object]) -> Mapping[str, object]:
    """The content with as many of its groups as a record takes; `truncated` tells of the rest."""
    groups = content["groups"]
    if not isinstance(groups, list) or len(json.dumps(content)) <= CONTENT_BYTES_MAX:
        return content
    kept, size = [], 0
    for group in groups:
        size += len(json.dumps(group)) + 2
        if size > CONTENT_BYTES_MAX - 1024:
            break
        kept.append(group)
    return {**content, "groups": kept, "truncated": True}

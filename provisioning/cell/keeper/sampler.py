"""Takes samples of a cluster's groups in a thread, one at a time and within a time limit.

A sample is what people see of a cluster that sleeps: its groups with their lag as they were. The
cluster's metrics are made from it too: `topics` has each topic's bytes in, bytes out and records in
since its broker started.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from console.base.runtime.clock import Clock
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.records import StoreError
from provisioning.cell.keeper.store import AsyncStore

LOGGER = logging.getLogger(__name__)

# Takes bootstrap servers, user name and password, and returns groups as JSON. It may block, and may
# raise any exception.
SampleGroups = Callable[[str, str, str], Sequence[Mapping[str, object]]]

# Below the 768 KiB that a metadata record takes.
CONTENT_BYTES_MAX = 700 * 1024
# After a sample the next one waits for so many times its duration, which bounds the load of a
# cluster where samples are slow.
PAUSE_PER_DURATION = 10
# How many samples of all clusters are taken at a time. More would only wait for the same processor,
# and of a keeper that has just started they would take it from everything else.
AT_ONCE = 16
# Where only counters changed, as they do all the time, a sample is written no more often than this.
COUNTERS_EVERY_MS = 15_000

Topics = Mapping[str, Sequence[int]]


class Sampler:
    """Samples one cluster once `turns` admits it. Calls `done` after each attempt."""

    def __init__(  # noqa: PLR0913 (its surroundings, all of them needed)
        self,
        cluster_id: str,
        take: Callable[[str], Sequence[Mapping[str, object]]],
        *,
        topics: Callable[[], Awaitable[Topics]],
        store: AsyncStore,
        clock: Clock,
        metrics: Metrics,
        timeout_s: float,
        turns: asyncio.Semaphore,
        done: Callable[[], None],
    ) -> None:
        # When the last finished attempt began, and the earliest time for the next one at the
        # interval (Unix ms).
        self.attempted_ms = 0
        self.next_ms = 0
        self._cluster_id = cluster_id
        self._take = take
        self._topics = topics
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._timeout_s = timeout_s
        self._turns = turns
        self._done = done
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._stored: Mapping[str, object] | None = None
        self._stored_ms = 0

    def start(self, bootstrap: str, *, last: bool = False) -> None:
        """Starts a sample, unless one is being taken.

        The `last` one before the cluster sleeps is written wherever anything changed.
        """
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._attempt_sample(bootstrap, last=last))

    async def close(self) -> None:
        """Cancels the sample that is being taken.

        Its thread may go on, and its result is dropped.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _attempt_sample(self, bootstrap: str, *, last: bool) -> None:
        began_ms = self._clock.now_ms()
        try:
            async with self._turns:
                began_ms = self._clock.now_ms()
                async with asyncio.timeout(self._timeout_s):
                    groups = await self._take_in_thread(bootstrap)
                topics = await self._topics()
            content = bounded_content({"groups": list(groups), "topics": dict(topics)})
            if self._is_news(content, began_ms, last=last):
                await self._store.put_sample(self._cluster_id, began_ms, content)
                self._stored, self._stored_ms = content, began_ms
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

    def _is_news(self, content: Mapping[str, object], now_ms: int, *, last: bool) -> bool:
        if self._stored is None or content["groups"] != self._stored["groups"]:
            return True
        stale = last or now_ms - self._stored_ms >= COUNTERS_EVERY_MS
        return stale and content["topics"] != self._stored["topics"]

    async def _take_in_thread(self, bootstrap: str) -> Sequence[Mapping[str, object]]:
        """Calls `take` in a daemon thread. Unlike a pool's, it does not delay the keeper's exit."""
        if self._thread is not None and self._thread.is_alive():
            message = "the sample before has not returned"
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


def bounded_content(content: Mapping[str, object]) -> Mapping[str, object]:
    """The content cut to what a metadata record takes; then `truncated` is set.

    Topics may have half of it, the first ones by name, and groups the rest, the first ones too.
    """
    groups, topics = content["groups"], content["topics"]
    if not isinstance(groups, list) or not isinstance(topics, dict):
        return content
    if len(json.dumps(content)) <= CONTENT_BYTES_MAX:
        return content
    left = CONTENT_BYTES_MAX - 1024
    shown = dict(_items_that_fit(sorted(topics.items()), left // 2))
    kept = _items_that_fit(groups, left - len(json.dumps(shown)))
    return {**content, "groups": kept, "topics": shown, "truncated": True}


def _items_that_fit(items: list[Any], bytes_max: int) -> list[Any]:
    """As many of the first items as have at most `bytes_max` bytes of JSON."""
    size = 0
    for place, item in enumerate(items):
        size += len(json.dumps(item)) + 2
        if size > bytes_max:
            return items[:place]
    return items

"""Takes samples of a cluster from what its brokers say, one at a time and within a time limit.

A sample is what people see of a cluster that sleeps: its groups with their lag as they were. The
cluster's metrics are made from it too: `topics` has each topic's bytes in, bytes out and records in
since its broker started.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from console.base.runtime.clock import Clock
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.sample_writer import SampleWriter
from provisioning.cell.sample_files import CONTENT_BYTES_MAX

LOGGER = logging.getLogger(__name__)

Content = Mapping[str, object]


class Sampler:
    """Samples one cluster. Calls `done` after each attempt."""

    def __init__(  # noqa: PLR0913 (its surroundings, all of them needed)
        self,
        cluster_id: str,
        take: Callable[[], Awaitable[Content | None]],
        *,
        writer: SampleWriter,
        clock: Clock,
        metrics: Metrics,
        timeout_s: float,
        done: Callable[[], None],
    ) -> None:
        # When the last finished attempt began (Unix ms).
        self.attempted_ms = 0
        self._cluster_id = cluster_id
        self._take = take
        self._writer = writer
        self._clock = clock
        self._metrics = metrics
        self._timeout_s = timeout_s
        self._done = done
        self._task: asyncio.Task[None] | None = None

    def start(self, *, last: bool = False) -> None:
        """Starts a sample, unless one is being taken.

        The `last` one before the cluster sleeps is written at once: until the cluster wakes, groups
        have the lag of its moment.
        """
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._attempt_sample(last=last))

    async def close(self) -> None:
        """Cancels the sample that is being taken."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _attempt_sample(self, *, last: bool) -> None:
        began_ms = self._clock.now_ms()
        try:
            async with asyncio.timeout(self._timeout_s):
                content = await self._take()
                if content is None:
                    self._metrics.count("sample_failures")
                    LOGGER.info("%s: no sample: its brokers do not say all", self._cluster_id)
                    return
                bounded = bounded_content(content)
                if last:
                    await self._writer.offer_last(self._cluster_id, began_ms, bounded)
                else:
                    self._writer.offer(self._cluster_id, began_ms, bounded)
            self._metrics.count("samples")
        except TimeoutError:
            self._metrics.count("sample_failures")
        except Exception:
            # A defect must not end the samples of this cluster, nor keep it awake.
            self._metrics.count("sample_failures")
            LOGGER.exception("%s: no sample", self._cluster_id)
        finally:
            self.attempted_ms = began_ms
            self._done()


def bounded_content(content: Content) -> Content:
    """The content cut to what a file takes of a cluster; then `truncated` is set.

    Topics may have half of it, the first ones by name, and groups the rest, the first ones too.
    """
    groups, topics = content["groups"], content["topics"]
    if not isinstance(groups, list) or not isinstance(topics, dict):
        return content
    if len(orjson.dumps(content)) <= CONTENT_BYTES_MAX:
        return content
    left = CONTENT_BYTES_MAX - 1024
    shown = dict(_items_that_fit(sorted(topics.items()), left // 2))
    kept = _items_that_fit(groups, left - len(orjson.dumps(shown)))
    return {**content, "groups": kept, "topics": shown, "truncated": True}


def _items_that_fit(items: list[Any], bytes_max: int) -> list[Any]:
    """As many of the first items as have at most `bytes_max` bytes of JSON."""
    size = 0
    for place, item in enumerate(items):
        size += len(orjson.dumps(item)) + 2
        if size > bytes_max:
            return items[:place]
    return items

"""States what the log of a cluster holds of each day that is over, for `reconcile` to compare.

What is said comes from manifests alone. They remember how much was split, by days: what one lane
file has of one partition counts to the day of its last block. Both sides can be added up by that
rule to the byte, whatever block midnight falls into, and whatever retention and compaction took.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from brokers.metadata import TopicHistory
from brokers.usage import PartitionSegments
from metering.events.keys import log_key
from metering.events.log import LoggedPartition, LogStatement, encode_statement
from metering.events.store import UsageStore
from metering.events.times import DAY_MS, HOUR_MS, day_of, day_start_ms

LOGGER = logging.getLogger(__name__)

# So many past days are stated by an agent that was away.
DAYS_BACK = 3
# Manifests remember days for so long.
REMEMBERED_MS = 96 * HOUR_MS
# Between a look at the clock here and one at a broker.
MARGIN_MS = HOUR_MS


@dataclass(slots=True)
class LogStatements:
    """The statements of one cluster. What it keeps only spares looking at the store."""

    store: UsageStore
    cell: str
    cluster_id: str
    stated_until_ms: int | None = None

    def is_due(self, until_ms: int) -> bool:
        """Tells whether a day ended by then that may not be stated yet."""
        return self.stated_until_ms is None or until_ms >= self.stated_until_ms + DAY_MS

    def follow(
        self, *, since_ms: int, until_ms: int, make: Callable[[int], LogStatement]
    ) -> Iterator[LogStatement]:
        """States every day that ended by `until_ms` and is not stated yet; gives those it stated.

        `make` is called with a day's first millisecond. `since_ms`: before it there was no
        cluster. Raises `OSError`.
        """
        end_ms = day_start_ms(day_of(until_ms))
        start_ms = max(day_start_ms(day_of(since_ms)), end_ms - DAYS_BACK * DAY_MS)
        for day_ms in range(max(start_ms, self.stated_until_ms or 0), end_ms, DAY_MS):
            key = log_key(self.cell, day_of(day_ms), self.cluster_id)
            if not self._is_stated(key):
                statement = make(day_ms)
                # Another agent may have been faster: what it says is as true.
                if self.store.put_new(key, encode_statement(statement)):
                    yield statement
        self.stated_until_ms = max(self.stated_until_ms or 0, end_ms)

    def _is_stated(self, key: str) -> bool:
        try:
            self.store.get(key)
        except FileNotFoundError:
            return False
        return True


def logged_partitions(
    partitions: Iterable[PartitionSegments], since_ms: int, until_ms: int
) -> Iterator[LoggedPartition]:
    """Bytes that were split of lane files whose last block was written in the days from `since_ms`
    until `until_ms`, by partition."""
    for kept in partitions:
        held = sum(size for day_ms, size in kept.split_by_day if since_ms <= day_ms < until_ms)
        if held:
            yield LoggedPartition(topic_id=kept.topic_id, partition=kept.partition, bytes=held)


def gone_topics(
    topics: Iterable[TopicHistory], partitions: Iterable[PartitionSegments], since_ms: int
) -> tuple[str, ...]:
    """Topics that were deleted since, of which no manifest is left."""
    there = {kept.topic_id for kept in partitions}
    return tuple(
        sorted(
            topic.id
            for topic in topics
            if topic.deleted_at_ms is not None
            and topic.deleted_at_ms >= since_ms - MARGIN_MS
            and topic.id not in there
        )
    )


def gap_of(*, since_ms: int, until_ms: int, as_of_ms: int, unsplit_since_ms: int) -> str:
    """Why a statement made now cannot tell all that the log held; empty where it can."""
    if as_of_ms > since_ms + REMEMBERED_MS - MARGIN_MS:
        late = timedelta(milliseconds=as_of_ms - until_ms)
        return f"it was made {late} after the day, and manifests have forgotten it"
    if unsplit_since_ms < until_ms:
        return "some of the day's records never came into segments"
    return ""

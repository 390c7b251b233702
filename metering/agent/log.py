"""States what the log of a cluster holds of each day that is over, for `reconcile` to compare.

Statements come from partitions' manifests alone. These remember for some days how many bytes were
split, by day: the bytes of one partition in one lane file count for the day of its last block
there. Usage can be added up by the same rule, so both sides agree to the byte, whatever block
midnight falls into, and whatever retention and compaction removed.
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

# An agent that was away states this many past days, as long as manifests may remember them.
DAYS_BACK = 3
# How long after a day's beginning manifests remember it (the engine's `split_by_day`).
REMEMBERED_MS = 96 * HOUR_MS
# Allows for different clocks of the agent and the brokers, and for a pass that takes long.
MARGIN_MS = HOUR_MS


@dataclass(slots=True)
class LogStatements:
    """The statements of one cluster. `stated_until_ms` only saves looking at the store."""

    store: UsageStore
    cell: str
    cluster_id: str
    stated_until_ms: int | None = None

    def is_due(self, until_ms: int) -> bool:
        """Whether a day ended by `until_ms` that may not be stated yet."""
        return self.stated_until_ms is None or until_ms >= self.stated_until_ms + DAY_MS

    def state_days(
        self, *, since_ms: int, until_ms: int, make: Callable[[int], LogStatement]
    ) -> Iterator[LogStatement]:
        """Stores a statement of every day that ended by `until_ms` and has none; yields those.

        `make` makes the statement of the day whose first millisecond it gets. Before `since_ms` the
        cluster did not exist. Raises `OSError`.
        """
        end_ms = day_start_ms(day_of(until_ms))
        start_ms = max(day_start_ms(day_of(since_ms)), end_ms - DAYS_BACK * DAY_MS)
        for day_ms in range(max(start_ms, self.stated_until_ms or 0), end_ms, DAY_MS):
            key = log_key(self.cell, day_of(day_ms), self.cluster_id)
            if not self._is_stated(key):
                statement = make(day_ms)
                # Another agent may have been faster: its statement is as good.
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
    """Bytes by partition that were split from lane files whose last block of the partition was
    written on a day in [since, until)."""
    for partition in partitions:
        held = sum(size for day_ms, size in partition.split_by_day if since_ms <= day_ms < until_ms)
        if held:
            yield LoggedPartition(
                topic_id=partition.topic_id, partition=partition.partition, bytes=held
            )


def gone_topics(
    topics: Iterable[TopicHistory], partitions: Iterable[PartitionSegments], since_ms: int
) -> tuple[str, ...]:
    """Ids of the topics that were deleted since `since_ms` and have no manifest any more."""
    there = {partition.topic_id for partition in partitions}
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
    """Why a statement made now may lack something that the log held; empty where it is whole."""
    if as_of_ms > since_ms + REMEMBERED_MS - MARGIN_MS:
        late = timedelta(milliseconds=as_of_ms - until_ms)
        return f"it was made {late} after the day, and manifests have forgotten it"
    if unsplit_since_ms < until_ms:
        return "some of the day's records never came into objects"
    return ""

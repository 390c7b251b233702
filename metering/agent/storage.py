"""Storage and partitions of a cluster, counted minute by minute. Pure and exact.

A minute counts for a segment only if the segment was kept during all of it: written before the
minute began, and at its end neither expired by the topic's rule or an earlier one, nor removed, nor
its topic deleted. It counts for a partition only if that existed during all of it. Minutes that
touch the first deletion of the cluster, or the first one of the topic that can be undone, do not
count. Later deletions count as if there were none (`free_deletions`). So no result can be more than
the truth.

The rule is Kafka's: segments expire from the oldest on, by age (`retention.ms` after their newest
timestamp, or after they were written where records have none) or by size (as long as the rest
without them is `retention.bytes` or more).

Segments that were merged or compacted count with their present size, from the time of their last
record. Manifests say for two hours how many more bytes there were before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import Protocol

from metering.agent.rules import Rule, RuleHistory, Span
from metering.events.records import Meter
from metering.events.slots import SlotRow
from metering.events.times import DAY_MS, MINUTE_MS, ceil_to, floor_to

# A time later than any other.
NEVER_MS = 1 << 62
# For how long a deletion counts that is not the first one, at most: what is deleted can be restored
# for 7 days, and is kept longer only where nothing may be removed.
COUNTED_DELETION_MS = 7 * DAY_MS
KEEPS_ALL = RuleHistory(Rule(), Rule())


class Segment(Protocol):
    """A run of records of a partition, in one object."""

    @property
    def bytes(self) -> int:
        """Bytes of its record batches."""

    @property
    def written_at_ms(self) -> int:
        """When its last record was written."""

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp of its records; -1 where they have none."""


class Dropped(Segment, Protocol):
    """A segment that retention removed."""

    @property
    def dropped_at_ms(self) -> int:
        """When it was removed."""


class Replaced(Protocol):
    """Bytes that were stored beside the present segments before a rewrite, in whole minutes."""

    @property
    def bytes(self) -> int:
        """Bytes of record batches."""

    @property
    def since_ms(self) -> int:
        """The first moment at which they were stored."""

    @property
    def until_ms(self) -> int:
        """The moment from which on they were not stored."""


class Exclusion(Protocol):
    """What a topic's earlier rules excluded, of the segments that were written until they ended.

    Brokers hand none of it out again: `brokers/core/crates/jobs/src/retention.rs`.
    """

    @property
    def since_ms(self) -> int:
        """Since when it was excluded at the earliest."""

    @property
    def until_ms(self) -> int:
        """When the last of these rules ended."""

    @property
    def older_than_ms(self) -> int | None:
        """Records with smaller timestamps were excluded; None: none by age."""

    @property
    def bytes(self) -> int | None:
        """How many bytes of a partition were kept; None: any size."""


class Topic(Protocol):
    """A topic that exists or existed."""

    @property
    def id(self) -> str:
        """32 hexadecimal digits."""

    @property
    def internal(self) -> bool:
        """Whether it is one of the service's own topics, which are not billed."""

    @property
    def created_at_ms(self) -> int:
        """When it was created."""

    @property
    def deleted_at_ms(self) -> int | None:
        """When it was deleted."""

    @property
    def partition_counts(self) -> Sequence[Span]:
        """(from when on, number of partitions), ascending."""

    @property
    def deletions(self) -> Sequence[tuple[int, int | None]]:
        """Times [from, until) in which it was deleted and could be restored; until None: still."""

    @property
    def excluded(self) -> Sequence[Exclusion]:
        """What its earlier rules excluded."""


class StoredPartition(Protocol):
    """What is stored of a partition, the oldest first."""

    @property
    def topic_id(self) -> str:
        """The id of its topic."""

    @property
    def partition(self) -> int:
        """Its number."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments that are stored."""

    @property
    def dropped(self) -> Sequence[Dropped]:
        """The segments that retention removed lately; they were before the stored ones."""

    @property
    def replaced(self) -> Sequence[Replaced]:
        """What rewriting removed lately."""


def window_rows(
    window: Span,
    *,
    topics: Iterable[Topic],
    rules: Mapping[str, RuleHistory],
    partitions: Iterable[StoredPartition],
    deletions: Sequence[tuple[int, int | None]],
) -> Iterator[SlotRow]:
    """Storage and partition rows of a window of whole minutes; none where nothing was used.

    `rules` are by topic id; a topic without any keeps all. Partitions of unknown topics do not
    count, since nobody knows whether they are billed.
    """
    living: dict[str, tuple[Topic, list[Span]]] = {}
    for topic in topics:
        spans = live_spans(window, topic, deletions)
        if not spans:
            continue
        living[topic.id] = (topic, spans)
        minutes = partition_minutes(topic, spans)
        if minutes:
            yield SlotRow(
                meter=Meter.PARTITION_MINUTES,
                topic_id=topic.id,
                quantity=minutes,
                billed=not topic.internal,
            )
    for partition in partitions:
        if partition.topic_id not in living:
            continue
        topic, spans = living[partition.topic_id]
        history = rules.get(partition.topic_id, KEEPS_ALL)
        by_rule: dict[Rule, list[Span]] = {}
        for piece, rule in chain.from_iterable(map(history.pieces, spans)):
            by_rule.setdefault(rule, []).append(piece)
        quantity = sum(
            byte_minutes(partition, rule, pieces, topic.excluded)
            for rule, pieces in by_rule.items()
        )
        if quantity:
            yield SlotRow(
                meter=Meter.STORAGE_BYTE_MINUTES,
                topic_id=partition.topic_id,
                partition=partition.partition,
                quantity=quantity,
                billed=not topic.internal,
            )


def live_spans(
    window: Span, topic: Topic, deletions: Sequence[tuple[int, int | None]]
) -> list[Span]:
    """The spans of whole minutes of a window in which a topic existed all the time, in order."""
    deleted_at_ms = NEVER_MS if topic.deleted_at_ms is None else topic.deleted_at_ms
    start = max(window[0], _minute_after(topic.created_at_ms))
    end = min(window[1], floor_to(deleted_at_ms, MINUTE_MS))
    free = [*free_deletions(deletions), *free_deletions(topic.deletions)]
    return without_deletions((start, end), free)


def free_deletions(
    deletions: Sequence[tuple[int, int | None]],
) -> Iterator[tuple[int, int | None]]:
    """The parts of a topic's or a cluster's deletions in which what is kept counts for nothing.

    They are all of the first deletion, and of each later one what is beyond
    `COUNTED_DELETION_MS`. Otherwise whoever restores for a minute now and then stores for nothing.
    """
    for place, (since, until) in enumerate(sorted(deletions, key=lambda deletion: deletion[0])):
        start = since + COUNTED_DELETION_MS if place else since
        if until is None or start <= until:
            yield start, until


def without_deletions(span: Span, deletions: Sequence[tuple[int, int | None]]) -> list[Span]:
    """The spans of whole minutes of a span that no deletion touches, in order."""
    spans: list[Span] = []
    start, end = span
    for since, until in sorted(deletions, key=lambda deletion: deletion[0]):
        whole = floor_to(since, MINUTE_MS)
        if start < min(whole, end):
            spans.append((start, min(whole, end)))
        start = max(start, NEVER_MS if until is None else ceil_to(until, MINUTE_MS))
    if start < end:
        spans.append((start, end))
    return spans


def partition_minutes(topic: Topic, spans: Iterable[Span]) -> int:
    """The sum over whole minutes of the number of partitions that existed all of the minute."""
    counts = [(_minute_after(at), count) for at, count in topic.partition_counts]
    total = 0
    for start, end in spans:
        for place, (at, count) in enumerate(counts):
            until = counts[place + 1][0] if place + 1 < len(counts) else NEVER_MS
            total += count * _minutes_between(max(start, at), min(end, until))
    return total


def byte_minutes(
    partition: StoredPartition,
    rule: Rule,
    spans: Iterable[Span],
    excluded: Iterable[Exclusion] = (),
) -> int:
    """The sum over whole minutes of the bytes that were kept all of the minute."""
    lives = list(segment_lives(partition, rule, excluded))
    return sum(
        size * _minutes_between(max(start, since), min(end, until))
        for start, end in spans
        for size, since, until in lives
    )


def segment_lives(
    partition: StoredPartition, rule: Rule, excluded: Iterable[Exclusion] = ()
) -> Iterator[tuple[int, int, int]]:
    """(bytes, since, until) of each segment, with the whole minutes [since, until) in which it was
    kept; then the same of the bytes that were stored beside them (`StoredPartition.replaced`).
    """
    segments: list[Segment] = [*partition.dropped, *partition.segments]
    dropped_at = [segment.dropped_at_ms for segment in partition.dropped]
    by_size = _size_expiries(segments, rule.retention_bytes)
    excluded_at = _exclusion_times(partition, excluded)
    before = -NEVER_MS
    for place, segment in enumerate(segments):
        by_age = max(_age_expiry(segment, rule.retention_ms), before)
        let_go = dropped_at[place] if place < len(dropped_at) else NEVER_MS
        before = min(by_age, by_size[place], let_go, excluded_at[place])
        since = _minute_after(segment.written_at_ms)
        until = floor_to(before, MINUTE_MS)
        if since < until:
            yield segment.bytes, since, until
    for replaced in partition.replaced:
        yield replaced.bytes, replaced.since_ms, replaced.until_ms


def _exclusion_times(partition: StoredPartition, excluded: Iterable[Exclusion]) -> list[int]:
    """For each segment, the removed ones first, since when an earlier rule excludes it."""
    removed = len(partition.dropped)
    times = [NEVER_MS] * (removed + len(partition.segments))
    for one in excluded:
        # What is stored counts by itself, as it does for brokers.
        stored = _count_excluded(partition.segments, one)
        gone = min(removed, _count_excluded([*partition.dropped, *partition.segments], one))
        for place in (*range(gone), *range(removed, removed + stored)):
            times[place] = min(times[place], one.since_ms)
    return times


def _count_excluded(segments: Sequence[Segment], excluded: Exclusion) -> int:
    """How many of the oldest segments earlier rules excluded."""
    there = list(takewhile(lambda segment: segment.written_at_ms < excluded.until_ms, segments))
    left = sum(segment.bytes for segment in there)
    for place, segment in enumerate(there):
        left -= segment.bytes
        old = excluded.older_than_ms is not None and _newest_ms(segment) < excluded.older_than_ms
        large = excluded.bytes is not None and left >= excluded.bytes
        if not (old or large):
            return place
    return len(there)


def _newest_ms(segment: Segment) -> int:
    """When its newest record was made; of records without timestamps, when they were written."""
    return segment.max_timestamp_ms if segment.max_timestamp_ms >= 0 else segment.written_at_ms


def _age_expiry(segment: Segment, retention_ms: int | None) -> int:
    """The time at which a segment expires by age; `NEVER_MS` without such a rule."""
    if retention_ms is None:
        return NEVER_MS
    return _newest_ms(segment) + retention_ms


def _size_expiries(segments: Sequence[Segment], retention_bytes: int | None) -> list[int]:
    """For each segment the time at which it expires by size: when enough bytes were written after
    it."""
    if retention_bytes is None:
        return [NEVER_MS] * len(segments)
    ends = [0]
    written = [-NEVER_MS]
    for segment in segments:
        ends.append(ends[-1] + segment.bytes)
        written.append(max(written[-1], segment.written_at_ms))
    expiries = []
    for place, segment in enumerate(segments):
        # The first segment behind this one at which the rest without it is large enough.
        reached = bisect_left(ends, ends[place + 1] + retention_bytes, lo=place + 1)
        over = written[reached] if reached < len(ends) else NEVER_MS
        expiries.append(max(over, segment.written_at_ms))
    return expiries


def _minute_after(at_ms: int) -> int:
    """The first minute that begins after a moment."""
    return floor_to(at_ms, MINUTE_MS) + MINUTE_MS


def _minutes_between(start_ms: int, end_ms: int) -> int:
    return max(0, end_ms - start_ms) // MINUTE_MS

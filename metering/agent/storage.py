"""What is stored and which partitions live, minute by minute: pure, and exact.

A minute counts for a segment only if the segment was kept throughout it: written before the minute
began, and at its end neither expired by the topic's rule, nor let go, nor its topic deleted. It
counts for a partition only if that lived throughout it. Minutes that touch a deletion of the
cluster, or one of the topic that can be undone, count for nothing. So nothing here can be more than
the truth.

The rule is Kafka's: segments go from the oldest on, by age (`retention.ms` after the newest
timestamp in them; of records without a timestamp, after they were written) or by size (as long as
what is left without them is `retention.bytes` or more).

What was joined or compacted counts as it is now, from when the last of it was written; how much
more there was before, manifests say for two hours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from metering.events.records import Meter
from metering.events.slots import SlotRow
from metering.events.times import MINUTE_MS, ceil_to, floor_to

# Later than any time.
NEVER_MS = 1 << 62

Span = tuple[int, int]


class Segment(Protocol):
    """A run of records of a partition that is kept."""

    @property
    def bytes(self) -> int:
        """Of its record batches."""

    @property
    def written_at_ms(self) -> int:
        """When the last of it was written."""

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp of its records; -1 where they have none."""


class Dropped(Segment, Protocol):
    """A segment that was let go."""

    @property
    def dropped_at_ms(self) -> int:
        """When."""


class Replaced(Protocol):
    """Bytes that were kept beside what is there, in whole minutes."""

    @property
    def bytes(self) -> int:
        """Of record batches."""

    @property
    def since_ms(self) -> int:
        """From when on."""

    @property
    def until_ms(self) -> int:
        """Until when."""


class Topic(Protocol):
    """A topic that exists or existed."""

    @property
    def id(self) -> str:
        """32 hexadecimal digits."""

    @property
    def internal(self) -> bool:
        """Whether it is the service's own."""

    @property
    def created_at_ms(self) -> int:
        """When it was created."""

    @property
    def deleted_at_ms(self) -> int | None:
        """When it was deleted."""

    @property
    def partition_counts(self) -> Sequence[Span]:
        """From when on it had how many partitions; ascending."""

    @property
    def deletions(self) -> Sequence[tuple[int, int | None]]:
        """[from, until) in which it was deleted and could be restored."""


class Kept(Protocol):
    """What a partition keeps, oldest first."""

    @property
    def topic_id(self) -> str:
        """Of which topic."""

    @property
    def partition(self) -> int:
        """Its number."""

    @property
    def segments(self) -> Sequence[Segment]:
        """What is there."""

    @property
    def dropped(self) -> Sequence[Dropped]:
        """What was let go lately, before what is there."""

    @property
    def replaced(self) -> Sequence[Replaced]:
        """What rewriting let go lately."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a topic keeps of each partition; None keeps all."""

    retention_ms: int | None = None
    retention_bytes: int | None = None

    def stricter(self, other: Rule) -> Rule:
        """The rule that keeps only what both keep."""
        return Rule(
            _least(self.retention_ms, other.retention_ms),
            _least(self.retention_bytes, other.retention_bytes),
        )


def window_rows(
    window: Span,
    *,
    topics: Iterable[Topic],
    rules: Mapping[str, Rule],
    partitions: Iterable[Kept],
    deletions: Sequence[tuple[int, int | None]],
) -> Iterator[SlotRow]:
    """Storage and partition rows of a window of whole minutes; none where nothing was used.

    `rules` are by topic id; a topic without one keeps all. Partitions of unknown topics count for
    nothing, since nobody knows whether they are somebody's.
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
    for kept in partitions:
        if kept.topic_id not in living:
            continue
        topic, spans = living[kept.topic_id]
        quantity = byte_minutes(kept, rules.get(kept.topic_id, Rule()), spans)
        if quantity:
            yield SlotRow(
                meter=Meter.STORAGE_BYTE_MINUTES,
                topic_id=kept.topic_id,
                partition=kept.partition,
                quantity=quantity,
                billed=not topic.internal,
            )


def live_spans(
    window: Span, topic: Topic, deletions: Sequence[tuple[int, int | None]]
) -> list[Span]:
    """The whole minutes of a window throughout which a topic lived, in order."""
    gone = NEVER_MS if topic.deleted_at_ms is None else topic.deleted_at_ms
    start = max(window[0], _minute_after(topic.created_at_ms))
    end = min(window[1], floor_to(gone, MINUTE_MS))
    return without_deletions((start, end), [*deletions, *topic.deletions])


def without_deletions(span: Span, deletions: Sequence[tuple[int, int | None]]) -> list[Span]:
    """The whole minutes of a span that no deletion touches."""
    spans: list[Span] = []
    start, end = span
    for since, until in sorted(deletions, key=lambda each: each[0]):
        whole = floor_to(since, MINUTE_MS)
        if start < min(whole, end):
            spans.append((start, min(whole, end)))
        start = max(start, NEVER_MS if until is None else ceil_to(until, MINUTE_MS))
    if start < end:
        spans.append((start, end))
    return spans


def partition_minutes(topic: Topic, spans: Iterable[Span]) -> int:
    """Minutes times partitions that lived throughout them."""
    counts = [(_minute_after(at), count) for at, count in topic.partition_counts]
    total = 0
    for start, end in spans:
        for place, (at, count) in enumerate(counts):
            until = counts[place + 1][0] if place + 1 < len(counts) else NEVER_MS
            total += count * _minutes(max(start, at), min(end, until))
    return total


def byte_minutes(kept: Kept, rule: Rule, spans: Iterable[Span]) -> int:
    """Minutes times bytes that were kept throughout them."""
    lives = list(segment_lives(kept, rule))
    return sum(
        size * _minutes(max(start, since), min(end, until))
        for start, end in spans
        for size, since, until in lives
    )


def segment_lives(kept: Kept, rule: Rule) -> Iterator[tuple[int, int, int]]:
    """Of each segment its bytes, and the whole minutes [since, until) through which it was kept.

    Then the same of what was kept beside them.
    """
    segments: list[Segment] = [*kept.dropped, *kept.segments]
    dropped_at = [each.dropped_at_ms for each in kept.dropped]
    by_size = _size_expiries(segments, rule.retention_bytes)
    before = -NEVER_MS
    for place, segment in enumerate(segments):
        by_age = max(_age_expiry(segment, rule.retention_ms), before)
        let_go = dropped_at[place] if place < len(dropped_at) else NEVER_MS
        before = min(by_age, by_size[place], let_go)
        since = _minute_after(segment.written_at_ms)
        until = floor_to(before, MINUTE_MS)
        if since < until:
            yield segment.bytes, since, until
    for replaced in kept.replaced:
        yield replaced.bytes, replaced.since_ms, replaced.until_ms


def _age_expiry(segment: Segment, retention_ms: int | None) -> int:
    """The last moment at which a segment is not too old."""
    if retention_ms is None:
        return NEVER_MS
    dated = segment.max_timestamp_ms >= 0
    return (segment.max_timestamp_ms if dated else segment.written_at_ms) + retention_ms


def _size_expiries(segments: Sequence[Segment], retention_bytes: int | None) -> list[int]:
    """When so much was written behind each segment that the rest suffices."""
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


def _minutes(start_ms: int, end_ms: int) -> int:
    return max(0, end_ms - start_ms) // MINUTE_MS


def _least(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)

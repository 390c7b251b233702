"""Storage and partition minutes against a walk over every minute, and never more than the truth."""

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.metadata_records import RetentionExclusion
from metering.agent.rules import Rule, RuleHistory, update_histories
from metering.agent.storage import byte_minutes, segment_lives, window_rows
from metering.events.times import DAY_MS, HOUR_MS, MINUTE_MS

M = MINUTE_MS
NEVER = 1 << 60


@dataclass(frozen=True)
class Segment:
    bytes: int
    written_at_ms: int
    max_timestamp_ms: int
    dropped_at_ms: int = NEVER


@dataclass(frozen=True)
class Replaced:
    bytes: int
    since_ms: int
    until_ms: int


@dataclass(frozen=True)
class StoredPartition:
    segments: list[Segment]
    dropped: list[Segment] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)
    topic_id: str = "t"
    partition: int = 0


@dataclass(frozen=True)
class Topic:
    created_at_ms: int = -M
    deleted_at_ms: int | None = None
    partition_counts: tuple[tuple[int, int], ...] = ((-M, 1),)
    deletions: tuple[tuple[int, int | None], ...] = ()
    id: str = "t"
    internal: bool = False
    retention_ms: int | None = None
    retention_bytes: int | None = None
    retention_since_ms: int = 0
    retention_before: tuple[int | None, int | None] | None = None
    excluded: tuple[RetentionExclusion, ...] = ()


def one(size, written, *, age=None, dropped=NEVER):
    return Segment(size, written, written if age is None else age, dropped)


def quantities(window, topic, kept, rule=None, deletions=()):
    rows = window_rows(
        window,
        topics=[topic],
        rules={"t": rule if isinstance(rule, RuleHistory) else RuleHistory(rule, rule)}
        if rule
        else {},
        partitions=[kept],
        deletions=deletions,
    )
    return {row.meter: row.quantity for row in rows}


@pytest.mark.parametrize(
    ("written", "minutes"), [(-1, 10), (0, 9), (1, 9), (M - 1, 9), (M, 8), (9 * M, 0)]
)
def test_a_minute_counts_from_the_first_that_begins_after_the_write(written, minutes):
    got = quantities((0, 10 * M), Topic(), StoredPartition([one(3, written)]))
    assert got.get("storage_byte_minutes", 0) == 3 * minutes


@pytest.mark.parametrize(("end", "minutes"), [(M - 1, 0), (M, 1), (5 * M - 1, 4), (5 * M, 5)])
def test_a_minute_counts_only_if_kept_to_its_end(end, minutes):
    window = (0, 10 * M)
    by_age = quantities(window, Topic(), StoredPartition([one(1, -1, age=end - 100)]), Rule(100))
    by_drop = quantities(window, Topic(), StoredPartition([], [one(1, -1, dropped=end)]))
    by_topic = quantities(window, Topic(deleted_at_ms=end), StoredPartition([one(1, -1)]))
    by_cluster = quantities(window, Topic(), StoredPartition([one(1, -1)]), deletions=[(end, None)])
    for got in (by_age, by_drop, by_topic, by_cluster):
        assert got.get("storage_byte_minutes", 0) == minutes
    assert by_topic.get("partition_minutes", 0) == minutes
    assert by_cluster.get("partition_minutes", 0) == minutes


def test_a_younger_segment_in_front_keeps_older_ones_behind_it():
    kept = StoredPartition([one(1, -2, age=8 * M), one(2, -1, age=1)])
    lives = list(segment_lives(kept, Rule(retention_ms=M)))
    assert [until for _, _, until in lives] == [9 * M, 9 * M]


def test_records_without_a_timestamp_have_the_age_of_their_block():
    lives = list(segment_lives(StoredPartition([Segment(1, 2 * M, -1)]), Rule(retention_ms=5 * M)))
    assert lives == [(1, 3 * M, 7 * M)]


def test_what_was_kept_before_segments_were_rewritten_counts_beside_what_is_kept():
    before = [Replaced(100, M, 3 * M), Replaced(30, 3 * M, 9 * M)]
    kept = StoredPartition([one(120, 2 * M + 1)], replaced=before)
    got = quantities((0, 10 * M), Topic(), kept)
    assert got["storage_byte_minutes"] == 100 * 2 + 150 * 6 + 120


def test_size_lets_go_when_the_rest_suffices():
    kept = StoredPartition([one(4, -3), one(4, 2 * M), one(4, 5 * M)])
    lives = list(segment_lives(kept, Rule(retention_bytes=8)))
    assert lives[0][2] == 5 * M
    assert all(live[2] > NEVER for live in lives[1:])
    # The same after it was let go, however late.
    late = StoredPartition([one(4, 2 * M), one(4, 5 * M)], [one(4, -3, dropped=9 * M)])
    assert list(segment_lives(late, Rule(retention_bytes=8))) == lives


def test_partitions_count_from_the_minute_after_they_came():
    topic = Topic(created_at_ms=M + 1, partition_counts=((M + 1, 2), (4 * M, 5)))
    assert quantities((0, 10 * M), topic, StoredPartition([])) == {
        "partition_minutes": 2 * 3 + 5 * 5
    }


def test_a_restored_cluster_counts_again_from_the_next_whole_minute():
    got = quantities(
        (0, 10 * M), Topic(), StoredPartition([one(1, -1)]), deletions=[(2 * M + 1, 5 * M - 1)]
    )
    assert got == {"partition_minutes": 7, "storage_byte_minutes": 7}
    of_topic = Topic(deletions=((2 * M + 1, 5 * M - 1),))
    assert quantities((0, 10 * M), of_topic, StoredPartition([one(1, -1)])) == got
    got = quantities((0, 10 * M), Topic(), StoredPartition([one(1, -1)]), deletions=[(1, 2)])
    assert got == {"partition_minutes": 9, "storage_byte_minutes": 9}


DAY = 24 * 60 * M


@pytest.mark.parametrize("whole_cluster", [False, True])
def test_only_the_first_deletion_is_free(whole_cluster):
    """Deleted, restored for three minutes, and deleted again, as often as one likes."""
    deletions = [(M, 2 * DAY), (2 * DAY + 3 * M, 8 * DAY), (8 * DAY + 3 * M, None)]

    def counted(start, end, known):
        kept = StoredPartition([one(5, -1)])
        topic = Topic() if whole_cluster else Topic(deletions=tuple(known))
        got = quantities((start, end), topic, kept, deletions=known if whole_cluster else ())
        assert got.get("storage_byte_minutes", 0) == 5 * got.get("partition_minutes", 0)
        return got.get("partition_minutes", 0)

    assert counted(0, 2 * DAY, [(M, None)]) == 1
    assert counted(0, 2 * DAY, deletions) == 1
    assert counted(2 * DAY, 15 * DAY, deletions) == 13 * DAY // M
    # What is kept longer than a deletion can be undone is no longer the customer's.
    assert counted(15 * DAY, 20 * DAY, deletions) == 3
    # A window that was measured while the deletion lasted says the same as one measured later.
    open_one = [*deletions[:1], (deletions[1][0], None)]
    window = (3 * DAY, 3 * DAY + 5 * M)
    assert counted(*window, open_one) == counted(*window, deletions) == 5
    # Gone for good it ends, at once.
    gone = Topic(deletions=tuple(deletions[:1]), deleted_at_ms=3 * DAY + 2 * M)
    assert quantities(window, gone, StoredPartition([one(5, -1)])) == {
        "partition_minutes": 2,
        "storage_byte_minutes": 10,
    }


def test_a_first_deletion_is_free_for_as_long_as_it_lasts():
    """An orphaned topic waits for as long as nobody attaches it."""
    lost = Topic(deletions=((2 * M, None),))
    assert quantities((30 * DAY, 30 * DAY + 5 * M), lost, StoredPartition([one(1, -1)])) == {}


def test_a_topic_of_a_restored_cluster_has_its_own_first_deletion():
    kept, cluster = StoredPartition([one(1, -1)]), [(M, 2 * M)]
    topic = Topic(deletions=((3 * M, 6 * M),))
    assert quantities((0, 10 * M), topic, kept, deletions=cluster)["partition_minutes"] == 6


def test_unknown_topics_count_for_nothing_and_internal_ones_are_not_billed():
    kept = StoredPartition([one(1, -1)], topic_id="other")
    assert "storage_byte_minutes" not in quantities((0, M), Topic(), kept)
    rows = list(
        window_rows(
            (0, M),
            topics=[Topic(internal=True)],
            rules={},
            partitions=[StoredPartition([one(1, -1)])],
            deletions=(),
        )
    )
    assert [row.billed for row in rows] == [False, False]


moments = st.integers(-3 * M, 12 * M) | st.integers(-3, 12).map(lambda n: n * M)


@st.composite
def histories(draw):
    """A partition's past: its segments in order, of which a head was let go."""
    written = sorted(draw(st.lists(moments, max_size=6)))
    ages = [draw(st.sampled_from([-1, at, at - M, at + 2 * M])) for at in written]
    sizes = [draw(st.integers(0, 5)) for _ in written]
    count = draw(st.integers(0, len(written)))
    dropped = sorted(draw(moments) for _ in range(count))
    segments = [Segment(size, at, age) for size, at, age in zip(sizes, written, ages, strict=True)]
    gone = [
        Segment(segment.bytes, segment.written_at_ms, segment.max_timestamp_ms, at)
        for segment, at in zip(segments, dropped, strict=False)
    ]
    return StoredPartition(segments[count:], gone)


rules = st.builds(
    Rule,
    st.none() | st.integers(0, 6 * M) | st.integers(0, 6).map(lambda n: n * M),
    st.none() | st.integers(0, 12),
)
spans = st.lists(st.tuples(moments, moments), max_size=2).map(
    lambda pairs: sorted((min(pair), max(pair)) for pair in pairs)
)


def newest_ms(segment):
    dated = segment.max_timestamp_ms >= 0
    return segment.max_timestamp_ms if dated else segment.written_at_ms


def is_kept(segments, segment, at_ms, rule):
    """Kafka's own rule at one moment, from the oldest segment on."""
    there = [other for other in segments if other.written_at_ms < at_ms <= other.dropped_at_ms]
    size = sum(other.bytes for other in there)
    for place, oldest in enumerate(there):
        old = rule.retention_ms is not None and newest_ms(oldest) < at_ms - rule.retention_ms
        large = rule.retention_bytes is not None and size - oldest.bytes >= rule.retention_bytes
        if not (old or large):
            return any(segment is other for other in there[place:])
        size -= oldest.bytes
    return False


@given(histories(), rules, spans)
def test_every_minute_is_counted_as_a_walk_over_minutes_counts_it(kept, rule, deletions):
    window = (0, 10 * M)
    segments = [*kept.dropped, *kept.segments]
    deletions = [deletion for deletion in deletions if deletion[0] < deletion[1]]
    expected = 0
    for start in range(*window, M):
        end = start + M
        if any(since < end and until > start for since, until in deletions[:1]):
            continue
        moments = _moments(segments, start, end, rule)
        for segment in segments:
            through = all(is_kept(segments, segment, at, rule) for at in moments)
            if segment.written_at_ms < start and through:
                expected += segment.bytes
    got = quantities(window, Topic(), kept, rule, deletions)
    assert got.get("storage_byte_minutes", 0) == expected


def _moments(segments, start, end, rule):
    """All moments of a minute at which a rule's answer may turn, and its ends."""
    turns = {start, end}
    for segment in segments:
        turns |= {segment.written_at_ms, segment.written_at_ms + 1, segment.dropped_at_ms}
        if rule.retention_ms is not None:
            turns |= {newest_ms(segment) + rule.retention_ms + 1}
    return sorted(at for at in turns if start <= at <= end)


@given(histories(), rules, st.lists(st.integers(1, 9), unique=True))
def test_windows_add_up_however_they_are_cut(kept, rule, cuts):
    edges = [0, *sorted(cuts), 10]
    whole = byte_minutes(kept, rule, [(0, 10 * M)])
    parts = [(a * M, b * M) for a, b in itertools.pairwise(edges)]
    assert sum(byte_minutes(kept, rule, [part]) for part in parts) == whole


WEEK, STRICT = Rule(7 * DAY_MS), Rule(1)
AT = 100 * DAY_MS


def test_a_rule_counts_once_it_has_held_for_five_minutes():
    """Whether it is stricter or looser: until then what the one before it keeps counts too."""
    kept = StoredPartition([one(1, AT - 8 * DAY_MS), one(10, AT - DAY_MS)])
    window, at = (AT, AT + 10 * M), AT + 2 * M + 1
    stricter = quantities(window, Topic(), kept, RuleHistory(WEEK, STRICT, at))
    assert stricter["storage_byte_minutes"] == 10 * 7
    looser = quantities(window, Topic(), kept, RuleHistory(STRICT, WEEK, at))
    assert looser["storage_byte_minutes"] == 10 * 7
    # The same of a window that is cut anywhere.
    for cut in range(1, 10):
        edge = AT + cut * M
        parts = [(AT, edge), (edge, AT + 10 * M)]
        got = [quantities(part, Topic(), kept, RuleHistory(WEEK, STRICT, at)) for part in parts]
        assert sum(part.get("storage_byte_minutes", 0) for part in got) == 10 * 7


@pytest.mark.parametrize(
    "excluded",
    [
        RetentionExclusion(AT, AT + 2 * M, AT - 2 * M, None),
        RetentionExclusion(AT, AT + 2 * M, None, 13),
    ],
)
def test_what_an_earlier_rule_excluded_counts_no_more(excluded):
    """Of what was written until that rule ended, and also once a broker has removed it."""
    old, young, later = one(1, AT - 3 * M), one(10, AT - M), one(5, AT + 3 * M, age=AT - 9 * M)
    window = (AT - M, AT + 10 * M)
    topic = Topic(excluded=(excluded,))
    segments = [old, one(3, AT - M, age=AT - M), young]
    got = quantities(window, topic, StoredPartition([*segments, later]))
    assert got["storage_byte_minutes"] == 1 * 1 + 13 * 10 + 5 * 6
    removed = [Segment(1, old.written_at_ms, old.max_timestamp_ms, AT + 5 * M)]
    got = quantities(window, topic, StoredPartition([*segments[1:], later], removed))
    assert got["storage_byte_minutes"] == 1 * 1 + 13 * 10 + 5 * 6


def test_histories_follow_what_topics_say_of_their_rules():
    known = update_histories({}, [Topic(retention_ms=50)], as_of_ms=10, measured_until_ms=0)
    assert known == {"t": RuleHistory(Rule(50), Rule(50))}
    strict = Topic(retention_ms=1, retention_since_ms=HOUR_MS, retention_before=(50, None))
    changed = update_histories(known, [strict], as_of_ms=2 * HOUR_MS, measured_until_ms=M)
    assert changed == {"t": RuleHistory(Rule(50), Rule(1), HOUR_MS)}
    later = 3 * HOUR_MS
    assert update_histories(changed, [strict], as_of_ms=later, measured_until_ms=M) == changed
    assert update_histories({}, [strict], as_of_ms=later, measured_until_ms=M) == changed
    gone = Topic(deleted_at_ms=M)
    assert update_histories(changed, [gone], as_of_ms=1, measured_until_ms=M + 1) == {}


def test_defaults_that_change_every_minute_never_make_a_stricter_rule_count():
    """The topic does not say what held before, since its own rule is none."""
    histories = update_histories({}, [Topic(retention_ms=50)], as_of_ms=0, measured_until_ms=0)
    for minute in range(1, 60):
        strict = Topic(retention_ms=1, retention_since_ms=AT + minute * M - 1)
        histories = update_histories(
            histories, [strict], as_of_ms=AT + minute * M, measured_until_ms=AT
        )
        assert histories["t"].counting(AT + minute * M) == Rule(50)
    settled = AT + 64 * M
    histories = update_histories(histories, [strict], as_of_ms=settled, measured_until_ms=AT)
    assert histories["t"].counting(settled) == Rule(1)


def test_a_change_of_which_nobody_knows_when_it_was_counts_from_the_look():
    known = {"t": RuleHistory(Rule(50), Rule(50))}
    other = Topic(retention_ms=9)
    changed = update_histories(known, [other], as_of_ms=AT, measured_until_ms=0)
    assert changed == {"t": RuleHistory(Rule(50), Rule(9), AT)}
    assert update_histories(changed, [other], as_of_ms=AT + M, measured_until_ms=0) == changed

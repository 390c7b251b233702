"""Ranges of offsets that were read, as the audit log has them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from provisioning.administration.read_ranges import (
    join_ranges,
    merge_ranges,
    ranges_of,
    shown_ranges,
)
from provisioning.kafka.shapes import Record

PAIR = st.tuples(st.integers(0, 40), st.integers(0, 6))
RANGES = st.lists(
    st.builds(
        lambda partition, pair: (partition, pair[0], pair[0] + pair[1]), st.integers(0, 3), PAIR
    ),
    max_size=30,
)


def offsets_in(ranges):
    """The offsets of ranges, each with its partition."""
    return {(partition, at) for partition, first, last in ranges for at in range(first, last + 1)}


@given(RANGES)
def test_merged_ranges_have_the_same_offsets_with_a_gap_between_each_two(ranges):
    merged = merge_ranges(ranges)
    assert offsets_in(merged) == offsets_in(ranges)
    for before, after in pairwise(merged):
        assert before[0] < after[0] or before[2] + 1 < after[1]


@given(RANGES, st.integers(1, 8))
def test_joined_ranges_lack_no_offset_and_are_so_few(ranges, at_most):
    merged = merge_ranges(ranges)
    joined = join_ranges(merged, at_most=at_most)
    assert offsets_in(joined) >= offsets_in(merged)
    partitions = {partition for partition, _, _ in merged}
    assert len(joined) == min(len(merged), max(at_most, len(partitions)))
    assert merge_ranges(joined) == joined


def test_the_smallest_gaps_are_joined():
    assert join_ranges([(0, 0, 1), (0, 4, 5), (0, 90, 91)], at_most=2) == [(0, 0, 5), (0, 90, 91)]


def record_at(partition: int, offset: int) -> Record:
    """A record without content."""
    return Record(
        partition=partition,
        offset=offset,
        timestamp_ms=None,
        timestamp_type=None,
        key=None,
        value=None,
        headers=[],
        size=0,
    )


def test_records_are_one_range_of_each_partition():
    records = [record_at(p, at) for p, at in [(1, 7), (0, 3), (1, 9), (1, 8)]]
    assert ranges_of(records) == [(0, 3, 3), (1, 7, 9)]


def test_ranges_are_shown_by_partition():
    ranges = [(0, 0, 49), (0, 60, 60), (12, 5, 6)]
    assert shown_ranges("orders", ranges) == {"orders-0": ["0-49", "60"], "orders-12": ["5-6"]}

"""Ranges of offsets of which records were read. Pure.

A range is `(partition, first offset, last offset)`, with both ends in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from provisioning.kafka.shapes import Record

Range = tuple[int, int, int]


def ranges_of(records: Iterable[Record]) -> list[Range]:
    """One range for each partition, from the first to the last of its records."""
    ends: dict[int, tuple[int, int]] = {}
    for record in records:
        at = record["offset"]
        first, last = ends.get(record["partition"], (at, at))
        ends[record["partition"]] = (min(first, at), max(last, at))
    return [(partition, first, last) for partition, (first, last) in sorted(ends.items())]


def merge_ranges(ranges: Iterable[Sequence[int]]) -> list[Range]:
    """The same offsets in as few ranges as possible, by partition and offset."""
    merged: list[Range] = []
    for partition, first, last in sorted((int(p), int(a), int(b)) for p, a, b in ranges):
        if merged and merged[-1][0] == partition and first <= merged[-1][2] + 1:
            merged[-1] = (partition, merged[-1][1], max(merged[-1][2], last))
        else:
            merged.append((partition, first, last))
    return merged


def join_ranges(ranges: Sequence[Range], *, at_most: int) -> list[Range]:
    """Merged ranges, joined over the smallest gaps of a partition where there are more.

    Then they have offsets besides, and lack none. Of each partition at least one is left.
    """
    gaps = [
        (after[1] - before[2], at)
        for at, (before, after) in enumerate(pairwise(ranges), start=1)
        if before[0] == after[0]
    ]
    closed = {at for _, at in sorted(gaps)[: max(len(ranges) - at_most, 0)]}
    joined: list[Range] = []
    for at, given in enumerate(ranges):
        if at in closed:
            joined[-1] = (joined[-1][0], joined[-1][1], given[2])
        else:
            joined.append(given)
    return joined


def shown_ranges(topic: str, ranges: Iterable[Range]) -> dict[str, list[str]]:
    """The ranges in an entry of the audit log, as `{"orders-0": ["0-49", "60"]}`."""
    shown: dict[str, list[str]] = {}
    for partition, first, last in ranges:
        text = str(first) if first == last else f"{first}-{last}"
        shown.setdefault(f"{topic}-{partition}", []).append(text)
    return shown

"""What became of acknowledged records: pure, and what it counts does not depend on any broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

# How many findings of each kind are named; all are counted.
NAMED_MAX = 10


class Sent(NamedTuple):
    """A record as its producer numbered it; numbers of a producer rise within a partition."""

    producer: int
    number: int

    def value(self) -> bytes:
        """The record's value."""
        return b"%d.%d" % self

    @classmethod
    def from_value(cls, value: bytes) -> Sent:
        """From a record's value. Raises `ValueError`."""
        producer, _, number = value.partition(b".")
        return cls(int(producer), int(number))


class Placed(NamedTuple):
    """A record of the log."""

    partition: int
    offset: int
    value: bytes


# What a library says of a record that was there already, whose offset the broker forgot.
UNKNOWN_OFFSET = -1

KINDS = ("lost", "duplicated", "reordered", "moved", "taken back", "unread")


@dataclass
class Verdict:
    """How many findings there are of each kind, and the first ones in words."""

    records: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    named: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not any(self.counts.values())

    def find(self, kind: str, text: str) -> None:
        """Notes a finding."""
        self.counts[kind] += 1
        named = self.named.setdefault(kind, [])
        if len(named) < NAMED_MAX:
            named.append(text)


def check(
    log: Iterable[Placed],
    acked: Mapping[Sent, tuple[int, int]],
    seen: Mapping[int, Mapping[int, bytes]],
) -> Verdict:
    """Compares a log with what producers and readers know.

    `log` has the records by partition and rising offset. `acked` says of each acknowledged record
    in which partition it is and at which offset, `seen` of each partition what the readers were
    given at which offset. Found are records that are

    - lost: acknowledged and not in the log;
    - duplicated: in the log more than once;
    - reordered: behind a record of the same producer and partition with a greater number;
    - moved: not where the acknowledgement said;
    - taken back: given to a reader, and the log has another one there or none;
    - unread: acknowledged, and never given to a reader.
    """
    verdict = Verdict()
    places = _read_log(log, verdict)
    for sent, (partition, offset) in acked.items():
        at = places.get(sent)
        if at is None:
            verdict.find("lost", f"{sent}, acknowledged at {partition}@{offset}")
            continue
        if at[0] != partition or offset not in {UNKNOWN_OFFSET, at[1]}:
            verdict.find("moved", f"{sent} is at {at}, acknowledged at {partition}@{offset}")
        if at[1] not in seen.get(at[0], {}):
            verdict.find("unread", f"{sent} at {at}")
    values = {place: sent.value() for sent, place in _all_places(places)}
    for partition, read in seen.items():
        for offset, value in read.items():
            now = values.get((partition, offset))
            if now != value:
                verdict.find("taken back", f"{partition}@{offset} was {value!r}, is {now!r}")
    return verdict


class _Places(dict[Sent, tuple[int, int]]):
    """Where each record is first, and where it is again."""

    def __init__(self) -> None:
        super().__init__()
        self.again: list[tuple[Sent, tuple[int, int]]] = []


def _read_log(log: Iterable[Placed], verdict: Verdict) -> _Places:
    places = _Places()
    greatest: dict[tuple[int, int], int] = {}
    for partition, offset, value in log:
        verdict.records += 1
        sent = Sent.from_value(value)
        if sent in places:
            verdict.find("duplicated", f"{sent} is at {places[sent]} and {partition}@{offset}")
            places.again.append((sent, (partition, offset)))
            continue
        places[sent] = (partition, offset)
        before = greatest.get((sent.producer, partition), -1)
        if sent.number < before:
            verdict.find("reordered", f"{sent} at {partition}@{offset} follows {before}")
        greatest[sent.producer, partition] = max(before, sent.number)
    return places


def _all_places(places: _Places) -> Sequence[tuple[Sent, tuple[int, int]]]:
    return [*places.items(), *places.again]


def difference(one: Sequence[Placed], other: Sequence[Placed]) -> list[str]:
    """The first records that two readings of a log do not have in common."""
    here, there = set(one), set(other)
    return [
        f"{name}: {placed}"
        for name, only in (
            ("only in the first", here - there),
            ("only in the second", there - here),
        )
        for placed in sorted(only)[:NAMED_MAX]
    ]

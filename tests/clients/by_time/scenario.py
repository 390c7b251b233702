"""What every client library is asked to do by time, and the one table of what comes out.

The records' times are theirs alone: years before they are sent, and out of order within a batch
and between batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

START_MS = 1_700_000_000_000
# Timestamps of the records of each batch, in ms after the first.
BATCHES_MS = ((0, 1000, 4000, 2000, 3000), (2500, 6000, 5000, 8000, 7000))
END = sum(map(len, BATCHES_MS))
# A time, in ms after the first record's, and the offset of the first record at or after it.
OFFSETS: Mapping[int, int | None] = {
    -1: 0,
    0: 0,
    500: 1,
    1000: 1,
    1001: 2,
    2000: 2,
    4000: 2,
    4001: 6,
    6000: 6,
    6001: 8,
    8000: 8,
    8001: None,
}
# Times in the first batch and in the second: a reader that starts at either skips some of a batch.
RESETS_MS = (1001, 4001)


@dataclass(frozen=True)
class Record:
    """A record of the topic's only partition. `timestamp`: in ms since 1970."""

    offset: int
    timestamp: int
    key: str
    value: str


Batch = Sequence[Record]


class Library(Protocol):
    """A client library, asked through its own calls."""

    codecs: Sequence[str]
    # What it answers for a time after all records; `END` where it turns that into the log's end.
    nothing: int | None

    def produce(
        self, bootstrap: str, topic: str, batches: Sequence[Batch], codec: str
    ) -> list[int]:
        """Sends each batch as one batch of the log; the offsets that the library reports."""

    def offsets(self, bootstrap: str, topic: str, times: Sequence[int]) -> list[int | None]:
        """The offsets of the first records at or after these times in ms since 1970."""

    def reset(self, bootstrap: str, topic: str, group: str, time: int, count: int) -> list[Record]:
        """Joins a group, moves it to the first record at or after a time, reads `count` records."""


def batches(start_ms: int = START_MS) -> list[list[Record]]:
    """The records, of which the first has this timestamp."""
    made: list[list[Record]] = []
    offset = 0
    for times in BATCHES_MS:
        made.append([])
        for ms in times:
            value = f"value {offset} " * 20
            made[-1].append(Record(offset, start_ms + ms, f"key {offset}", value))
            offset += 1
    return made


def records_from(offset: int, sent: Iterable[Batch]) -> list[Record]:
    """The records from this offset on."""
    return [record for batch in sent for record in batch if record.offset >= offset]


def assert_produces(library: Library, bootstrap: str, topic: str, codec: str) -> None:
    """Sends the records to an empty topic."""
    offsets = library.produce(bootstrap, topic, batches(), codec)
    assert offsets == list(range(END)), offsets


def assert_finds_offsets(library: Library, bootstrap: str, topic: str) -> None:
    """Looks all times of the table up."""
    listed = library.offsets(bootstrap, topic, [START_MS + ms for ms in OFFSETS])
    answers = dict(zip(OFFSETS, listed, strict=True))
    expected = {ms: library.nothing if at is None else at for ms, at in OFFSETS.items()}
    assert answers == expected, f"{answers}, not {expected}"


def assert_resets(library: Library, bootstrap: str, topic: str, group: str) -> None:
    """Resets a group to times, and reads all records from there to the end."""
    for ms in RESETS_MS:
        start = OFFSETS[ms]
        assert start is not None
        name = f"{group}-{ms}"
        records = library.reset(bootstrap, topic, name, START_MS + ms, END - start)
        expected = records_from(start, batches())
        assert records == expected, f"after a reset to {ms}: {records}, not {expected}"

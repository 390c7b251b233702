"""Reads a cluster's lanes from the places up to which they are metered.

Rows of version 2 are sums over a whole lane file, so a file that may go on is read again in the
next pass. A file of which an earlier release metered the first blocks goes on in version 1: each
lane file is billed by one version alone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from brokers.errors import BrokerError
from brokers.usage import LaneReading, SealedEnd
from metering.agent.progress import LaneProgress
from metering.agent.rows import Owner, lane_table, sum_files
from metering.agent.source import Reader
from metering.events.manifests import LaneEntry, LaneFile
from metering.events.records import BLOCKS_VERSION

# Errors of one lane. They must not keep others from being read.
LANE_ERRORS = (BrokerError, OSError, ValueError)


class UnknownTopicError(ValueError):
    """A lane has usage of a topic that its cluster never had: nobody knows whether it is billed."""


class LostBlocksError(ValueError):
    """Another agent dropped an index while it was read. The next pass begins behind it."""


@dataclass(slots=True)
class LaneState:
    """A lane during a pass: how far the entries in manifests go, and what was read since."""

    incarnation: int
    reported: LaneProgress
    now: LaneProgress
    is_listed: bool
    """An earlier entry of the cluster lists the lane."""
    gap: tuple[int, int] | None = None
    """(sequence, time) of the first block after a gap in the lane; None without a gap."""
    files: list[LaneFile] = field(default_factory=list)
    """Whole files whose sums are in no entry yet."""
    unsplit_since_ms: int | None = None
    failed: bool = False

    @property
    def has_news(self) -> bool:
        """Whether there is something beside rows that must be in a manifest now."""
        return not self.is_listed or self.now.ended != self.reported.ended or self.gap is not None

    def coverage(self) -> LaneEntry | None:
        """The lane's entry for the next manifest; None where an earlier entry states its end."""
        if self.reported.ended and self.now == self.reported:
            return None
        first, since = self.gap or (self.reported.sequence + 1, self.reported.until_ms)
        return LaneEntry(
            incarnation=self.incarnation,
            started_at_ms=self.now.started_at_ms,
            ended=self.now.ended,
            first_sequence=first,
            last_sequence=self.now.sequence,
            since_ms=since,
            until_ms=self.now.until_ms,
            files=tuple(self.files),
        )

    def read_nothing(self, end: SealedEnd | None, *, runs: bool, as_of_ms: int) -> None:
        """Moves the state of a lane that is not on storage.

        It is removed after its end was read, or its broker has not written yet. Otherwise it is
        lost: raises `FileNotFoundError`.
        """
        if end is not None and end.sequence <= self.now.sequence:
            self.now = replace(self.now, ended=True, until_ms=max(self.now.until_ms, as_of_ms))
        elif runs and self.now.sequence == 0:
            self.now = replace(self.now, until_ms=max(self.now.until_ms, as_of_ms))
        elif not self.now.ended:
            message = "it is not on storage, although not all of it was read"
            raise FileNotFoundError(message)

    def mark_reported(self) -> None:
        """Notes that everything that was read is in an entry."""
        self.reported, self.is_listed, self.gap, self.files = self.now, True, None, []


@dataclass(frozen=True, slots=True)
class LaneLook:
    """Reads the lanes of one cluster."""

    reader: Reader
    owner: Owner
    final: bool
    """The cluster is deleted and has no brokers: a lane without an end is taken to have ended."""
    internal: Callable[[str], bool]
    """Takes a topic's id; returns whether it is an internal one. Raises `UnknownTopicError`."""
    now_ms: Callable[[], int]
    record_version: int
    """The version of the rows: one of `metering.events.records.RECORD_VERSIONS`."""

    def read(self, state: LaneState, end: SealedEnd | None) -> Iterator[pa.Table]:
        """Reads a lane to its present end. When a table is yielded, `state` has moved past it.

        Raises one of `LANE_ERRORS`.
        """
        by_blocks = self.record_version == BLOCKS_VERSION
        yield from (self._read_blocks if by_blocks else self._read_files)(state, end)

    def _read_blocks(self, state: LaneState, end: SealedEnd | None) -> Iterator[pa.Table]:
        more = True
        while more:
            table, at, more = self._read_page(state, state.now, end)
            state.now = replace(at, whole=False)
            if table.num_rows:
                yield table

    def _read_files(self, state: LaneState, end: SealedEnd | None) -> Iterator[pa.Table]:
        at, more = state.now, True
        held: pa.Table | None = None
        while more:
            page, at, more = self._read_page(state, at, end)
            if not state.now.is_between_files:
                begun, page = _split_rows(page, _first_file(page) + 1)
                if begun.num_rows:
                    ended = page.num_rows > 0 or at.ended or at.file > _first_file(begun)
                else:
                    ended = at.ended or at.file > state.now.file > 0
                state.now = _settle(state.now, at, page) if ended else replace(at, whole=False)
                if begun.num_rows:
                    yield begun
                if not ended:
                    continue
            if held is not None:
                page = pa.concat_tables([held, page], promote_options="permissive")
            whole, held = _split_rows(page, None if at.ended else at.file)
            before, state.now = state.now, _settle(state.now, at, held)
            if whole.num_rows:
                # Where the first blocks are lost, no entry of this lane says that they are there.
                first = max(before.sequence + 1, 0 if state.gap is None else state.gap[0])
                state.files += _files_of(whole, first, state.now.sequence)
                yield sum_files(whole)

    def _read_page(
        self, state: LaneState, at: LaneProgress, end: SealedEnd | None
    ) -> tuple[pa.Table, LaneProgress, bool]:
        """Rows by block behind a place, the place behind them, and whether there are more.

        Raises `LostBlocksError` where the place may be within a file, of which no sum can be made.
        """
        reading = self.reader.read_lane(
            self.owner.cluster_id,
            state.incarnation,
            after_sequence=at.sequence,
            after_file=at.file,
            final=self.final,
            sealed_end=end,
        )
        if reading.gap is not None and at.sequence > state.now.sequence:
            message = f"blocks from {reading.gap[0]} on went while their file was read"
            raise LostBlocksError(message)
        table = lane_table(self.owner, state.incarnation, reading, self.internal)
        return table, self._advance(state, at, reading, end), reading.more

    def _advance(
        self, state: LaneState, at: LaneProgress, reading: LaneReading, end: SealedEnd | None
    ) -> LaneProgress:
        now_ms = self.now_ms()
        last_ms = _last_time(reading.written_at_ms) if reading.rows else 0
        if reading.gap is not None and state.gap is None:
            first_ms = (
                _first_time(reading.written_at_ms) if reading.rows else reading.covered_until_ms
            )
            state.gap = (reading.gap[1] + 1, max(at.until_ms, first_ms))
        # An ended lane is wholly read, so it is covered up to now.
        until_ms = now_ms if reading.ended else min(reading.covered_until_ms, now_ms)
        state.unsplit_since_ms = reading.unsplit_since_ms
        return replace(
            at,
            sequence=max(at.sequence, reading.last_sequence),
            file=max(at.file, reading.last_file),
            until_ms=max(at.until_ms, until_ms),
            alive_ms=max(at.alive_ms, last_ms),
            ended=reading.ended,
            assumed=reading.ended and self.final and end is None,
        )


def _split_rows(rows: pa.Table, below_file: int | None) -> tuple[pa.Table, pa.Table]:
    """The rows of files below a number, and the others. None: all are below."""
    if below_file is None:
        return rows, rows.slice(0, 0)
    # Rows are in the order of files.
    count = pc.sum(pc.less(rows["lane_file"], below_file)).as_py() or 0
    return rows.slice(0, count), rows.slice(count)


def _settle(before: LaneProgress, at: LaneProgress, held: pa.Table) -> LaneProgress:
    """The place up to which whole files are read, where `held` was read of the file after them."""
    if not held.num_rows:
        return replace(at, whole=True)
    # Blocks between the last whole file and the first row that is held have no rows.
    first_ms = held["window_start_ms"][0].as_py()
    return replace(
        at,
        sequence=held["block"][0].as_py() - 1,
        file=_first_file(held),
        until_ms=max(before.until_ms, min(at.until_ms, first_ms - 1)),
        whole=True,
    )


def _files_of(rows: pa.Table, first_sequence: int, last_sequence: int) -> list[LaneFile]:
    """The files of rows, with all blocks from the first to the last among them."""
    # Without threads the groups are in the order of their first rows.
    firsts = rows.group_by("lane_file", use_threads=False).aggregate([("block", "min")])
    files, blocks = (firsts[name].to_pylist() for name in ("lane_file", "block_min"))
    begins = [first_sequence, *blocks[1:], last_sequence + 1]
    return [
        LaneFile(file=file, first_sequence=begin, last_sequence=after - 1)
        for file, (begin, after) in zip(files, pairwise(begins), strict=True)
    ]


def _first_file(rows: pa.Table) -> int:
    """The number of the first row's file; 0 without rows."""
    number: int = rows["lane_file"][0].as_py() if rows.num_rows else 0
    return number


def _first_time(times: bytes) -> int:
    value: int = struct.unpack_from("<q", times)[0]
    return value


def _last_time(times: bytes) -> int:
    value: int = struct.unpack_from("<q", times, len(times) - 8)[0]
    return value

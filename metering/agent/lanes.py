"""Reads a cluster's lanes on from where they are metered."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from brokers.errors import BrokerError
from brokers.usage import LaneReading, SealedEnd
from metering.agent.progress import LaneProgress
from metering.agent.rows import Owner, lane_table
from metering.agent.source import Reader
from metering.events.manifests import LaneCoverage

# What may be wrong with one lane, and must not keep others from being read.
LANE_ERRORS = (BrokerError, OSError, ValueError)


class UnknownTopicError(ValueError):
    """A lane has usage of a topic that its cluster never had: whether it is billed is unknown."""


@dataclass(slots=True)
class LaneState:
    """A lane during a pass: what manifests tell of it, and what was read since."""

    incarnation: int
    told: LaneProgress
    now: LaneProgress
    known: bool
    """An entry before this one had it."""
    gap: tuple[int, int] | None = None
    """The first block that is there behind a gap, and the time of it."""
    unsplit_since_ms: int | None = None
    failed: bool = False

    @property
    def has_news(self) -> bool:
        """Tells whether there is something to tell that cannot wait."""
        return not self.known or self.now.ended != self.told.ended or self.gap is not None

    def coverage(self) -> LaneCoverage | None:
        """Its entry; None where an entry before this one told its end."""
        if self.told.ended and self.now == self.told:
            return None
        first, since = self.gap or (self.told.sequence + 1, self.told.until_ms)
        return LaneCoverage(
            incarnation=self.incarnation,
            started_at_ms=self.now.started_at_ms,
            ended=self.now.ended,
            first_sequence=first,
            last_sequence=self.now.sequence,
            since_ms=since,
            until_ms=self.now.until_ms,
        )

    def read_nothing(self, end: SealedEnd | None, *, runs: bool, as_of_ms: int) -> None:
        """A lane of which nothing is on storage: nothing yet, or nothing ever, or it is lost."""
        if end is not None and end.sequence <= self.now.sequence:
            self.now = replace(self.now, ended=True, until_ms=max(self.now.until_ms, as_of_ms))
        elif runs and self.now.sequence == 0:
            self.now = replace(self.now, until_ms=max(self.now.until_ms, as_of_ms))
        elif not self.now.ended:
            message = "it is not on storage"
            raise FileNotFoundError(message)

    def tell(self) -> None:
        """What was read is in an entry."""
        self.told, self.known, self.gap = self.now, True, None


@dataclass(frozen=True, slots=True)
class LaneLook:
    """How to read the lanes of one cluster."""

    reader: Reader
    owner: Owner
    final: bool
    """Nobody runs the cluster nor will, unless it is restored."""
    internal: Callable[[str], bool]
    """Whether a topic, by its id, is the service's own. Raises `UnknownTopicError`."""
    now_ms: Callable[[], int]

    def read(self, state: LaneState, end: SealedEnd | None) -> Iterator[pa.Table]:
        """Reads a lane to its end for now; `state` is what was read up to each table.

        What is wrong with it is raised, one of `LANE_ERRORS`.
        """
        while True:
            reading = self.reader.read_lane(
                self.owner.cluster_id,
                state.incarnation,
                after_sequence=state.now.sequence,
                after_file=state.now.file,
                final=self.final,
                sealed_end=end,
            )
            table = lane_table(self.owner, state.incarnation, reading, self.internal)
            self._move(state, reading, end)
            if reading.rows:
                yield table
            if not reading.more:
                return

    def _move(self, state: LaneState, reading: LaneReading, end: SealedEnd | None) -> None:
        now_ms = self.now_ms()
        last_ms = _last(reading.written_at_ms) if reading.rows else 0
        if reading.gap is not None and state.gap is None:
            first_ms = _first(reading.written_at_ms) if reading.rows else reading.covered_until_ms
            state.gap = (reading.gap[1] + 1, max(state.now.until_ms, first_ms))
        # All of an ended lane is read, so nothing of it can come until now.
        until_ms = now_ms if reading.ended else min(reading.covered_until_ms, now_ms)
        state.unsplit_since_ms = reading.unsplit_since_ms
        state.now = replace(
            state.now,
            sequence=max(state.now.sequence, reading.last_sequence),
            file=max(state.now.file, reading.last_file),
            until_ms=max(state.now.until_ms, until_ms),
            alive_ms=max(state.now.alive_ms, last_ms),
            ended=reading.ended,
            assumed=reading.ended and self.final and end is None,
        )


def _first(times: bytes) -> int:
    value: int = struct.unpack_from("<q", times)[0]
    return value


def _last(times: bytes) -> int:
    value: int = struct.unpack_from("<q", times, len(times) - 8)[0]
    return value

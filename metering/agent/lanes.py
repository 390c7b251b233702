"""Reads a cluster's lanes from the places up to which they are metered."""

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
from metering.events.manifests import LaneEntry

# Errors of one lane. They must not keep others from being read.
LANE_ERRORS = (BrokerError, OSError, ValueError)


class UnknownTopicError(ValueError):
    """A lane has usage of a topic that its cluster never had: nobody knows whether it is billed."""


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
        self.reported, self.is_listed, self.gap = self.now, True, None


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

    def read(self, state: LaneState, end: SealedEnd | None) -> Iterator[pa.Table]:
        """Reads a lane to its present end. When a table is yielded, `state` has moved past it.

        Raises one of `LANE_ERRORS`.
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
            self._advance_state(state, reading, end)
            if reading.rows:
                yield table
            if not reading.more:
                return

    def _advance_state(self, state: LaneState, reading: LaneReading, end: SealedEnd | None) -> None:
        now_ms = self.now_ms()
        last_ms = _last_time(reading.written_at_ms) if reading.rows else 0
        if reading.gap is not None and state.gap is None:
            first_ms = (
                _first_time(reading.written_at_ms) if reading.rows else reading.covered_until_ms
            )
            state.gap = (reading.gap[1] + 1, max(state.now.until_ms, first_ms))
        # An ended lane is wholly read, so it is covered up to now.
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


def _first_time(times: bytes) -> int:
    value: int = struct.unpack_from("<q", times)[0]
    return value


def _last_time(times: bytes) -> int:
    value: int = struct.unpack_from("<q", times, len(times) - 8)[0]
    return value

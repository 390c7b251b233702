"""Gathers what is new of one cluster, as parts of usage files with a bounded size each.

A part takes the cluster from one state of progress to the next: it has rows, the manifest's entry
for them, and what may be dropped once both are stored. This module writes nothing but slots and
statements of the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from brokers.metadata import ClusterSpec, ClusterStatus, LaneRecord, TopicHistory
from brokers.usage import PartitionSegments
from metering.agent.lanes import LANE_ERRORS, LaneLook, LaneState, UnknownTopicError
from metering.agent.log import LogStatements, gap_of, gone_topics, logged_partitions
from metering.agent.progress import ClusterProgress, LaneProgress
from metering.agent.rows import Owner, slot_table
from metering.agent.rules import RuleHistory, update_histories
from metering.agent.slots import BrokerLife, SlotChain, Span, broker_rows
from metering.agent.source import Source
from metering.agent.storage import NEVER_MS, window_rows
from metering.events.coverage import MARGIN_MS
from metering.events.log import LogStatement
from metering.events.manifests import ClusterEntry, StorageEntry
from metering.events.records import FILES_VERSION
from metering.events.slots import SlotRow
from metering.events.store import UsageStore
from metering.events.times import DAY_MS, HOUR_MS, MINUTE_MS, floor_to, format_ms

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one usage file that one cluster has."""

    cluster_id: str
    tables: list[pa.Table]
    entry: ClusterEntry
    topics: Mapping[str, str]
    """Names of the topics in the rows, by `<cluster id>/<topic id>`."""
    after: ClusterProgress
    drops: Mapping[int, int]
    """By lane: once the part is stored, indexes of files with smaller numbers are not needed."""

    @property
    def rows(self) -> int:
        """The number of rows in the tables."""
        return sum(table.num_rows for table in self.tables)


@dataclass(frozen=True, slots=True)
class Cell:
    """What the meters of all clusters of a cell share."""

    name: str
    source: Source
    store: UsageStore
    now_ms: Callable[[], int]
    count_error: Callable[[str], None]
    """Counts an error, by its kind."""
    window_minutes: int = 5
    record_version: int = FILES_VERSION
    rows_max: int = 500_000
    """A part with this many rows is full, and the next one begins."""


@dataclass(slots=True)
class Pass:
    """The state of one pass over a cluster."""

    owner: Owner
    spec: ClusterSpec
    as_of_ms: int
    before: ClusterProgress
    """The progress up to the last part that was made, in this pass or an earlier one."""
    records: Mapping[int, LaneRecord]
    stored: frozenset[int]
    """Incarnations whose lanes are on storage."""
    lanes: dict[int, LaneState]
    final: bool
    """The cluster is deleted and has no brokers, so nothing follows unless it is restored."""
    awake: bool
    brokers: bool
    topics: dict[str, TopicHistory] = field(default_factory=dict)
    rules: Mapping[str, RuleHistory] = field(default_factory=dict)
    tables: list[pa.Table] = field(default_factory=list)
    measured_since_ms: int | None = None
    """Start of the measured time that is in no part yet; None where nothing can be measured."""
    measured_until_ms: int | None = None

    @property
    def rows(self) -> int:
        """The number of rows that are in no part yet."""
        return sum(table.num_rows for table in self.tables)

    def is_running(self, incarnation: int) -> bool:
        """Whether a lane's broker runs, as far as the metadata store says."""
        record = self.records.get(incarnation)
        return record is not None and record.state == "live" and self.brokers


class ClusterMeter:
    """Meters one cluster. What it keeps between passes saves work, and says when brokers ran."""

    def __init__(self, cell: Cell, cluster_id: str) -> None:
        self._cell = cell
        self._cluster_id = cluster_id
        self._chain = SlotChain(cell.store, cell.name, cluster_id)
        self._statements = LogStatements(cell.store, cell.name, cluster_id)
        self._kept: dict[tuple[str, int], PartitionSegments] = {}
        # Lanes that ended and whose records are all in objects.
        self._split: set[int] = set()
        self._dropped: dict[int, int] = {}
        # Lanes that are wholly recorded and marked so on storage.
        self._marked: set[int] = set()
        # By lane, the last time at which its broker was seen to run. Passes without a part move no
        # progress, and an idle broker makes none.
        self._alive: dict[int, int] = {}
        self._quiet: tuple[object, int] | None = None
        self.covered_until_ms: int | None = None
        self.failing = False

    def parts(
        self, spec: ClusterSpec, status: ClusterStatus | None, before: ClusterProgress
    ) -> Iterator[Part]:
        """Yields what is new since `before` as parts.

        Raises `BrokerError`, `OSError` or `ValueError`. Parts that were yielded before still count,
        and the next pass continues after them.
        """
        as_of_ms = self._cell.now_ms()
        if self._quiet is not None:
            signs, until_ms = self._quiet
            if signs == (spec, status, before.as_of_ms) and as_of_ms < until_ms:
                self.covered_until_ms = as_of_ms
                return
        self._quiet = None
        state = self._start_pass(spec, status, before, as_of_ms)
        yield from self._read_lanes(state)
        yield from self._measure_time(state)
        if _has_news(state):
            yield self._make_part(state)
        self._state_log(state)
        open_lanes = [lane for lane in state.lanes.values() if not lane.now.ended]
        self.covered_until_ms = min([as_of_ms, *(lane.now.until_ms for lane in open_lanes)])
        self.failing = any(lane.failed for lane in state.lanes.values())
        if not state.awake and not self.failing:
            # Nothing changes until a client wakes it, and its time is measured by the hour. So it
            # is not looked at again before the next hour is over.
            next_ms = floor_to(as_of_ms - MARGIN_MS, HOUR_MS) + HOUR_MS + MARGIN_MS
            self._quiet = ((spec, status, state.before.as_of_ms), next_ms)

    def closing_part(self, before: ClusterProgress) -> Part:
        """The part that says that the cluster is gone from the cell, and that nothing follows."""
        as_of_ms = max(self._cell.now_ms(), before.as_of_ms or 0)
        entry = ClusterEntry(
            cluster_id=self._cluster_id,
            organization_id=before.organization_id,
            since_ms=before.as_of_ms,
            as_of_ms=as_of_ms,
            closed=True,
        )
        after = replace(before, as_of_ms=as_of_ms, closed=True)
        return Part(self._cluster_id, [], entry, {}, after, {})

    def drop_indexes(self, drops: Mapping[int, int]) -> int:
        """Drops indexes that are not needed since a part is stored; returns how many."""
        dropped = 0
        for incarnation, below_file in drops.items():
            dropped += self._cell.source.reader.drop_indexes(
                self._cluster_id, incarnation, below_file=below_file
            )
            self._dropped[incarnation] = below_file
        return dropped

    def _mark_metered(self, over: frozenset[int]) -> None:
        """Marks lanes on storage that are wholly recorded, so that brokers may remove them."""
        for incarnation in sorted(over - self._marked):
            if self._cell.source.reader.mark_metered(self._cluster_id, incarnation):
                self._marked.add(incarnation)
        self._marked &= over

    def _start_pass(
        self,
        spec: ClusterSpec,
        status: ClusterStatus | None,
        before: ClusterProgress,
        as_of_ms: int,
    ) -> Pass:
        source = self._cell.source
        records = {lane.incarnation: lane for lane in source.lanes(self._cluster_id)}
        stored = frozenset(lane.incarnation for lane in source.reader.lanes(self._cluster_id))
        self._mark_metered(stored & before.over)
        measured_ms = before.storage_until_ms
        if measured_ms is None:
            # From the first entry on, so that a loss of the first slots leaves a hole in coverage.
            created_at_ms = source.created_at_ms(self._cluster_id)
            measured_ms = None if created_at_ms is None else floor_to(created_at_ms, HOUR_MS)
        return Pass(
            owner=Owner(self._cell.name, self._cluster_id, spec.organization_id),
            spec=spec,
            as_of_ms=as_of_ms,
            before=before,
            records=records,
            stored=stored,
            lanes=_lane_states(before, records, stored, as_of_ms),
            final=spec.state == "deleted" and not (status and status.brokers),
            awake=status is None or status.phase != "asleep",
            brokers=status is None or bool(status.brokers),
            rules=before.rules,
            measured_since_ms=measured_ms,
            measured_until_ms=measured_ms,
        )

    def _read_lanes(self, state: Pass) -> Iterator[Part]:
        """Reads all lanes; an error of one lane is logged, and does not stop the others."""
        look = LaneLook(
            self._cell.source.reader,
            state.owner,
            state.final,
            lambda topic_id: self._is_internal(state, topic_id),
            self._cell.now_ms,
            self._cell.record_version,
        )
        for number, lane in state.lanes.items():
            settled = lane.reported.ended and (state.final or not lane.reported.assumed)
            if settled and number in self._split:
                continue
            record = state.records.get(number)
            end = None if record is None else record.sealed_end
            try:
                if number not in state.stored:
                    lane.read_nothing(end, runs=state.is_running(number), as_of_ms=state.as_of_ms)
                else:
                    for table in look.read(lane, end):
                        state.tables.append(table)
                        if state.rows >= self._cell.rows_max:
                            yield self._make_part(state)
            except LANE_ERRORS as error:
                lane.failed = True
                self._log_error("lane", f"lane {number} cannot be read: {error}")
            if lane.gap is not None:
                self._log_error("gap", f"lane {number} lacks blocks before {lane.gap[0]}")
            if state.is_running(number):
                self._alive[number] = state.as_of_ms
                lane.now = replace(lane.now, alive_ms=max(lane.now.alive_ms, state.as_of_ms))
            if lane.now.ended and lane.unsplit_since_ms is None and not lane.failed:
                self._split.add(number)

    def _measure_time(self, state: Pass) -> Iterator[Part]:
        """Follows the chain of slots up to the time of which all records are in objects.

        Records that are only in lanes are not counted as stored. A slot that was made before they
        are split would leave them out for good.
        """
        start_ms = state.measured_until_ms
        if start_ms is None:
            return
        limits = [state.as_of_ms - MARGIN_MS]
        if not state.final:
            limits += [_unsplit_since(lane) for lane in state.lanes.values()]
        self._read_topics(state)
        state.rules = update_histories(
            state.before.rules,
            state.topics.values(),
            as_of_ms=state.as_of_ms,
            measured_until_ms=start_ms,
        )
        step_minutes = self._cell.window_minutes if state.awake else 60
        refreshed: list[bool] = []

        def make(window: Span) -> Iterator[SlotRow]:
            if not refreshed:
                self._read_manifests()
                refreshed.append(True)
            return self._slot_rows(state, window)

        for slot in self._chain.follow(
            start_ms, limit_ms=min(limits), step_ms=step_minutes * MINUTE_MS, make=make
        ):
            if slot.rows:
                state.tables.append(slot_table(state.owner, slot))
            state.measured_until_ms = slot.window_end_ms
            if state.rows >= self._cell.rows_max:
                yield self._make_part(state)

    def _slot_rows(self, state: Pass, window: Span) -> Iterator[SlotRow]:
        yield from window_rows(
            window,
            topics=state.topics.values(),
            rules=state.rules,
            partitions=self._kept.values(),
            deletions=state.spec.deletions,
        )
        lives = [
            BrokerLife(
                number,
                lane.now.started_at_ms,
                window[1] if state.is_running(number) else self._alive_ms(lane),
            )
            for number, lane in state.lanes.items()
        ]
        yield from broker_rows(window, lives)

    def _state_log(self, state: Pass) -> None:
        """States what the log holds of each past day whose records are all in objects by now."""
        until_ms, lanes = state.measured_until_ms, state.lanes.values()
        if until_ms is None or not self._statements.is_due(until_ms):
            return
        born_ms = self._cell.source.created_at_ms(self._cluster_id)
        if born_ms is None or any(lane.failed for lane in lanes):
            return
        # The time of a deleted cluster is measured even where its lanes hold records that nobody
        # will split any more. The statement must name these as a gap.
        unsplit_ms = min(map(_unsplit_since, lanes), default=NEVER_MS) if state.final else NEVER_MS

        def make(day_ms: int) -> LogStatement:
            self._read_topics(state)
            self._read_manifests()
            end_ms, partitions = day_ms + DAY_MS, self._kept.values()
            return LogStatement(
                cell=self._cell.name,
                cluster_id=self._cluster_id,
                since_ms=day_ms,
                until_ms=end_ms,
                as_of_ms=state.as_of_ms,
                gap=gap_of(
                    since_ms=day_ms,
                    until_ms=end_ms,
                    as_of_ms=state.as_of_ms,
                    unsplit_since_ms=unsplit_ms,
                ),
                partitions=tuple(logged_partitions(partitions, day_ms, end_ms)),
                gone_topics=gone_topics(state.topics.values(), partitions, day_ms),
            )

        for statement in self._statements.state_days(
            since_ms=born_ms, until_ms=until_ms, make=make
        ):
            if statement.gap:
                day = format_ms(statement.since_ms)
                self._log_error("log", f"the log of {day} cannot be stated: {statement.gap}")
        self._forget_partitions(state)

    def _read_manifests(self) -> None:
        names = {place: partition.name for place, partition in self._kept.items()}
        for partition in self._cell.source.reader.manifests(self._cluster_id, names):
            self._kept[partition.topic_id, partition.partition] = partition

    def _read_topics(self, state: Pass) -> None:
        state.topics = {topic.id: topic for topic in self._cell.source.topics(self._cluster_id)}

    def _is_internal(self, state: Pass, topic_id: str) -> bool:
        if topic_id not in state.topics:
            self._read_topics(state)
        topic = state.topics.get(topic_id)
        if topic is None:
            message = f"there never was a topic {topic_id}"
            raise UnknownTopicError(message)
        return topic.internal

    def _make_part(self, state: Pass) -> Part:
        """A part with everything that was read since the last one; moves the pass's state to it."""
        before, until_ms = state.before, state.measured_until_ms
        coverages = [lane.coverage() for _, lane in sorted(state.lanes.items())]
        entry = ClusterEntry(
            cluster_id=self._cluster_id,
            organization_id=state.owner.organization_id,
            since_ms=before.as_of_ms,
            as_of_ms=state.as_of_ms,
            lanes=tuple(coverage for coverage in coverages if coverage is not None),
            storage=None
            if until_ms is None
            else StorageEntry(since_ms=_checked_start(state.measured_since_ms), until_ms=until_ms),
        )
        finished = {
            number for number, lane in state.lanes.items() if self._is_finished(lane, until_ms)
        }
        after = replace(
            before,
            organization_id=state.owner.organization_id,
            as_of_ms=state.as_of_ms,
            storage_until_ms=until_ms,
            lanes={n: lane.now for n, lane in state.lanes.items() if n not in finished},
            over=before.over | finished,
            rules=state.rules,
        )
        part = Part(
            self._cluster_id,
            state.tables,
            entry,
            self._topic_names(state),
            after,
            {
                number: lane.now.file
                for number, lane in sorted(state.lanes.items())
                if lane.now.file > self._dropped.get(number, 0)
            },
        )
        for lane in state.lanes.values():
            lane.mark_reported()
        state.before, state.tables, state.measured_since_ms = after, [], until_ms
        self._alive = {n: ms for n, ms in self._alive.items() if n in after.lanes}
        self._forget_partitions(state)
        return part

    def _is_finished(self, lane: LaneState, measured_until_ms: int | None) -> bool:
        """Whether nothing is left to do for a lane from the next pass on.

        Its end is in a stored manifest and is not assumed, its records are in objects, its indexes
        are dropped, and slots cover all the time in which its broker ran.
        """
        return (
            lane.reported.ended
            and lane.now == lane.reported
            and not lane.reported.assumed
            and lane.incarnation in self._split
            and lane.now.file <= self._dropped.get(lane.incarnation, 0)
            and measured_until_ms is not None
            and measured_until_ms >= self._alive_ms(lane)
        )

    def _alive_ms(self, lane: LaneState) -> int:
        """The last time at which a lane's broker is known to have run."""
        return max(lane.now.alive_ms, self._alive.get(lane.incarnation, 0))

    def _topic_names(self, state: Pass) -> dict[str, str]:
        used: set[str] = set()
        for table in state.tables:
            for chunk in table.column("topic_id").chunks:
                used.update(chunk.dictionary.to_pylist())
        return {
            f"{self._cluster_id}/{topic_id}": state.topics[topic_id].name
            for topic_id in sorted(used)
            if topic_id in state.topics
        }

    def _forget_partitions(self, state: Pass) -> None:
        """Forgets partitions of topics that no later window can count."""
        if state.topics:
            self._kept = {
                place: partition
                for place, partition in self._kept.items()
                if place[0] in state.rules
            }

    def _log_error(self, kind: str, message: str) -> None:
        self._cell.count_error(kind)
        LOGGER.error("%s: %s", self._cluster_id, message)


def _lane_states(
    before: ClusterProgress,
    records: Mapping[int, LaneRecord],
    stored: frozenset[int],
    as_of_ms: int,
) -> dict[int, LaneState]:
    """By incarnation, the lanes that are not wholly recorded yet."""
    states = {}
    for number in sorted({*before.lanes, *records, *stored} - before.over):
        progress = before.lanes.get(number)
        if progress is None:
            record = records.get(number)
            # Nobody knows when a lane started that is on storage only: it may have been at any time
            # since the last entry.
            started = record.started_at_ms if record else min(as_of_ms, before.as_of_ms or 0)
            progress = LaneProgress(started_at_ms=started, until_ms=started, alive_ms=started)
        states[number] = LaneState(number, progress, progress, is_listed=number in before.lanes)
    return states


def _has_news(state: Pass) -> bool:
    """Whether a part is due: for rows or news, or once an hour so that the hour can be complete."""
    before = state.before
    if before.as_of_ms is None or state.tables or state.rules != before.rules:
        return True
    if state.measured_until_ms != before.storage_until_ms:
        return True
    reported_hour = floor_to(before.as_of_ms - MARGIN_MS, HOUR_MS)
    return floor_to(state.as_of_ms - MARGIN_MS, HOUR_MS) > reported_hour or any(
        lane.has_news for lane in state.lanes.values()
    )


def _unsplit_since(lane: LaneState) -> int:
    """The earliest time of records of a lane that are in no object; `NEVER_MS` for none."""
    if lane.failed:
        return 0
    return NEVER_MS if lane.unsplit_since_ms is None else lane.unsplit_since_ms


def _checked_start(value: int | None) -> int:
    if value is None:
        message = "measured time has a start"
        raise AssertionError(message)
    return value

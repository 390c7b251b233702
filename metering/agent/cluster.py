"""One cluster: what is new of it, as parts of usage files, in a bounded amount of memory each.

A part takes the cluster from one state of progress to the next: rows, the manifest's entry that
tells of them, and what may be dropped once both are stored. Nothing here writes but slots.
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
from metering.agent.rules import RuleHistory, looked
from metering.agent.slots import BrokerLife, SlotChain, Span, broker_rows
from metering.agent.source import Source
from metering.agent.storage import NEVER_MS, window_rows
from metering.events.coverage import MARGIN_MS
from metering.events.log import LogStatement
from metering.events.manifests import ClusterCoverage, StorageCoverage
from metering.events.slots import SlotRow
from metering.events.store import UsageStore
from metering.events.times import DAY_MS, HOUR_MS, MINUTE_MS, floor_to, format_ms

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """What one usage file takes of one cluster."""

    cluster_id: str
    tables: list[pa.Table]
    entry: ClusterCoverage
    topics: Mapping[str, str]
    """Names by `<cluster id>/<topic id>`, of the topics in the rows."""
    after: ClusterProgress
    drops: Mapping[int, int]
    """Of each lane: indexes of files below this one are not needed once the part is stored."""

    @property
    def rows(self) -> int:
        """How many."""
        return sum(table.num_rows for table in self.tables)


@dataclass(frozen=True, slots=True)
class Cell:
    """What all clusters share."""

    name: str
    source: Source
    store: UsageStore
    now_ms: Callable[[], int]
    count_error: Callable[[str], None]
    """Counts an error of a kind."""
    window_minutes: int = 5
    rows_max: int = 500_000
    """A part that has so many rows is full."""


@dataclass(slots=True)
class Pass:
    """What a pass knows of its cluster."""

    owner: Owner
    spec: ClusterSpec
    as_of_ms: int
    before: ClusterProgress
    """What parts of this pass, or earlier ones, tell."""
    records: Mapping[int, LaneRecord]
    stored: frozenset[int]
    """Lanes that are on storage."""
    lanes: dict[int, LaneState]
    final: bool
    """Nobody runs the cluster, nor will unless it is restored."""
    awake: bool
    brokers: bool
    topics: dict[str, TopicHistory] = field(default_factory=dict)
    rules: Mapping[str, RuleHistory] = field(default_factory=dict)
    tables: list[pa.Table] = field(default_factory=list)
    measured_since_ms: int | None = None
    """Where the time begins that no part tells of yet."""
    measured_until_ms: int | None = None

    @property
    def rows(self) -> int:
        """Rows that no part has yet."""
        return sum(table.num_rows for table in self.tables)

    def runs(self, incarnation: int) -> bool:
        """Tells whether a lane's broker runs, as far as is known."""
        record = self.records.get(incarnation)
        return record is not None and record.state == "live" and self.brokers


class ClusterMeter:
    """Meters one cluster. What it keeps from pass to pass only spares work."""

    def __init__(self, cell: Cell, cluster_id: str) -> None:
        self._cell = cell
        self._cluster_id = cluster_id
        self._chain = SlotChain(cell.store, cell.name, cluster_id)
        self._statements = LogStatements(cell.store, cell.name, cluster_id)
        self._kept: dict[tuple[str, int], PartitionSegments] = {}
        # Lanes that ended and whose records are all in segments.
        self._split: set[int] = set()
        self._dropped: dict[int, int] = {}
        # Lanes of which everything is told, and that say so.
        self._marked: set[int] = set()
        self._quiet: tuple[object, int] | None = None
        self.covered_until_ms: int | None = None
        self.failing = False

    def parts(
        self, spec: ClusterSpec, status: ClusterStatus | None, before: ClusterProgress
    ) -> Iterator[Part]:
        """What is new. Raises `BrokerError`, `OSError` or `ValueError`: what was given by then
        stands, and the next pass goes on behind it."""
        as_of_ms = self._cell.now_ms()
        if self._quiet is not None:
            signs, until_ms = self._quiet
            if signs == (spec, status, before.as_of_ms) and as_of_ms < until_ms:
                self.covered_until_ms = as_of_ms
                return
        self._quiet = None
        state = self._look(spec, status, before, as_of_ms)
        yield from self._read_lanes(state)
        yield from self._measure(state)
        if _has_news(state):
            yield self._part(state)
        self._state_log(state)
        open_lanes = [lane for lane in state.lanes.values() if not lane.now.ended]
        self.covered_until_ms = min([as_of_ms, *(lane.now.until_ms for lane in open_lanes)])
        self.failing = any(lane.failed for lane in state.lanes.values())
        if not state.awake and not self.failing:
            # Nothing happens until somebody wakes it; its time is measured by the hour.
            next_ms = floor_to(as_of_ms - MARGIN_MS, HOUR_MS) + HOUR_MS + MARGIN_MS
            self._quiet = ((spec, status, state.before.as_of_ms), next_ms)

    def closing(self, before: ClusterProgress) -> Part:
        """Tells that the cluster is gone."""
        as_of_ms = max(self._cell.now_ms(), before.as_of_ms or 0)
        entry = ClusterCoverage(
            cluster_id=self._cluster_id,
            organization_id=before.organization_id,
            since_ms=before.as_of_ms,
            as_of_ms=as_of_ms,
            closed=True,
        )
        after = replace(before, as_of_ms=as_of_ms, closed=True)
        return Part(self._cluster_id, [], entry, {}, after, {})

    def drop(self, drops: Mapping[int, int]) -> int:
        """Drops indexes that a stored part made needless; gives how many."""
        dropped = 0
        for incarnation, below_file in drops.items():
            dropped += self._cell.source.reader.drop_indexes(
                self._cluster_id, incarnation, below_file=below_file
            )
            self._dropped[incarnation] = below_file
        return dropped

    def _mark(self, over: frozenset[int]) -> None:
        """Has lanes of which everything is told say so: brokers remove them."""
        for incarnation in sorted(over - self._marked):
            if self._cell.source.reader.mark_metered(self._cluster_id, incarnation):
                self._marked.add(incarnation)
        self._marked &= over

    def _look(
        self,
        spec: ClusterSpec,
        status: ClusterStatus | None,
        before: ClusterProgress,
        as_of_ms: int,
    ) -> Pass:
        source = self._cell.source
        records = {lane.incarnation: lane for lane in source.lanes(self._cluster_id)}
        stored = frozenset(lane.incarnation for lane in source.reader.lanes(self._cluster_id))
        self._mark(stored & before.over)
        measured_ms = before.storage_until_ms
        if measured_ms is None:
            # From the first entry on, so that the loss of the first slots shows.
            created_at_ms = source.created_at_ms(self._cluster_id)
            measured_ms = None if created_at_ms is None else floor_to(created_at_ms, HOUR_MS)
        return Pass(
            owner=Owner(self._cell.name, self._cluster_id, spec.organization_id),
            spec=spec,
            as_of_ms=as_of_ms,
            before=before,
            records=records,
            stored=stored,
            lanes=_states(before, records, stored, as_of_ms),
            final=spec.state == "deleted" and not (status and status.brokers),
            awake=status is None or status.phase != "asleep",
            brokers=status is None or bool(status.brokers),
            rules=before.rules,
            measured_since_ms=measured_ms,
            measured_until_ms=measured_ms,
        )

    def _read_lanes(self, state: Pass) -> Iterator[Part]:
        """Reads all lanes; what is wrong with one of them stays with that one."""
        look = LaneLook(
            self._cell.source.reader,
            state.owner,
            state.final,
            lambda topic_id: self._is_internal(state, topic_id),
            self._cell.now_ms,
        )
        for number, lane in state.lanes.items():
            settled = lane.told.ended and (state.final or not lane.told.assumed)
            if settled and number in self._split:
                continue
            record = state.records.get(number)
            end = None if record is None else record.sealed_end
            try:
                if number not in state.stored:
                    lane.read_nothing(end, runs=state.runs(number), as_of_ms=state.as_of_ms)
                else:
                    for table in look.read(lane, end):
                        state.tables.append(table)
                        if state.rows >= self._cell.rows_max:
                            yield self._part(state)
            except LANE_ERRORS as error:
                lane.failed = True
                self._complain("lane", f"lane {number} cannot be read: {error}")
            if lane.gap is not None:
                self._complain("gap", f"lane {number} lacks blocks before {lane.gap[0]}")
            if state.runs(number):
                lane.now = replace(lane.now, alive_ms=max(lane.now.alive_ms, state.as_of_ms))
            if lane.now.ended and lane.unsplit_since_ms is None and not lane.failed:
                self._split.add(number)

    def _measure(self, state: Pass) -> Iterator[Part]:
        """Follows the chain of slots as far as all records of the time are in segments."""
        start_ms = state.measured_until_ms
        if start_ms is None:
            return
        limits = [state.as_of_ms - MARGIN_MS]
        if not state.final:
            limits += [_unsplit_since(lane) for lane in state.lanes.values()]
        self._read_topics(state)
        state.rules = looked(
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
            return self._rows(state, window)

        for slot in self._chain.follow(
            start_ms, limit_ms=min(limits), step_ms=step_minutes * MINUTE_MS, make=make
        ):
            if slot.rows:
                state.tables.append(slot_table(state.owner, slot))
            state.measured_until_ms = slot.window_end_ms
            if state.rows >= self._cell.rows_max:
                yield self._part(state)

    def _rows(self, state: Pass, window: Span) -> Iterator[SlotRow]:
        yield from window_rows(
            window,
            topics=state.topics.values(),
            rules={topic: history.at(window[0]) for topic, history in state.rules.items()},
            partitions=self._kept.values(),
            deletions=state.spec.deletions,
        )
        lives = [
            BrokerLife(
                number,
                lane.now.started_at_ms,
                window[1] if state.runs(number) else lane.now.alive_ms,
            )
            for number, lane in state.lanes.items()
        ]
        yield from broker_rows(window, lives)

    def _state_log(self, state: Pass) -> None:
        """States what the log holds of the days of which all records are in segments by now."""
        until_ms, lanes = state.measured_until_ms, state.lanes.values()
        if until_ms is None or not self._statements.is_due(until_ms):
            return
        born_ms = self._cell.source.created_at_ms(self._cluster_id)
        if born_ms is None or any(lane.failed for lane in lanes):
            return
        # Of a deleted cluster time is measured whatever its lanes still hold.
        unsplit_ms = min(map(_unsplit_since, lanes), default=NEVER_MS) if state.final else NEVER_MS

        def make(day_ms: int) -> LogStatement:
            self._read_topics(state)
            self._read_manifests()
            end_ms, kept = day_ms + DAY_MS, self._kept.values()
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
                partitions=tuple(logged_partitions(kept, day_ms, end_ms)),
                gone_topics=gone_topics(state.topics.values(), kept, day_ms),
            )

        for statement in self._statements.follow(since_ms=born_ms, until_ms=until_ms, make=make):
            if statement.gap:
                day = format_ms(statement.since_ms)
                self._complain("log", f"the log of {day} cannot be stated: {statement.gap}")
        self._forget(state)

    def _read_manifests(self) -> None:
        names = {place: kept.name for place, kept in self._kept.items()}
        for kept in self._cell.source.reader.manifests(self._cluster_id, names):
            self._kept[kept.topic_id, kept.partition] = kept

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

    def _part(self, state: Pass) -> Part:
        """All that was read and is in no part yet."""
        before, until_ms = state.before, state.measured_until_ms
        coverages = [lane.coverage() for _, lane in sorted(state.lanes.items())]
        entry = ClusterCoverage(
            cluster_id=self._cluster_id,
            organization_id=state.owner.organization_id,
            since_ms=before.as_of_ms,
            as_of_ms=state.as_of_ms,
            lanes=tuple(coverage for coverage in coverages if coverage is not None),
            storage=None
            if until_ms is None
            else StorageCoverage(since_ms=_known(state.measured_since_ms), until_ms=until_ms),
        )
        told = {number for number, lane in state.lanes.items() if self._is_told(lane, until_ms)}
        after = replace(
            before,
            organization_id=state.owner.organization_id,
            as_of_ms=state.as_of_ms,
            storage_until_ms=until_ms,
            lanes={n: lane.now for n, lane in state.lanes.items() if n not in told},
            over=before.over | told,
            rules=state.rules,
        )
        part = Part(
            self._cluster_id,
            state.tables,
            entry,
            self._names(state),
            after,
            {
                number: lane.now.file
                for number, lane in sorted(state.lanes.items())
                if lane.now.file > self._dropped.get(number, 0)
            },
        )
        for lane in state.lanes.values():
            lane.tell()
        state.before, state.tables, state.measured_since_ms = after, [], until_ms
        self._forget(state)
        return part

    def _is_told(self, lane: LaneState, measured_until_ms: int | None) -> bool:
        """Tells whether nothing is left to do for a lane, from the next pass on."""
        return (
            lane.told.ended
            and lane.now == lane.told
            and not lane.told.assumed
            and lane.incarnation in self._split
            and lane.now.file <= self._dropped.get(lane.incarnation, 0)
            and measured_until_ms is not None
            and measured_until_ms >= lane.now.alive_ms
        )

    def _names(self, state: Pass) -> dict[str, str]:
        used: set[str] = set()
        for table in state.tables:
            for chunk in table.column("topic_id").chunks:
                used.update(chunk.dictionary.to_pylist())
        return {
            f"{self._cluster_id}/{topic_id}": state.topics[topic_id].name
            for topic_id in sorted(used)
            if topic_id in state.topics
        }

    def _forget(self, state: Pass) -> None:
        """Lets go of partitions that no later window can see."""
        if state.topics:
            self._kept = {
                place: kept for place, kept in self._kept.items() if place[0] in state.rules
            }

    def _complain(self, kind: str, message: str) -> None:
        self._cell.count_error(kind)
        LOGGER.error("%s: %s", self._cluster_id, message)


def _states(
    before: ClusterProgress,
    records: Mapping[int, LaneRecord],
    stored: frozenset[int],
    as_of_ms: int,
) -> dict[int, LaneState]:
    """All lanes of which not everything is told."""
    states = {}
    for number in sorted({*before.lanes, *records, *stored} - before.over):
        known = before.lanes.get(number)
        if known is None:
            record = records.get(number)
            # Of a lane that only storage knows it is unknown when it started: at any time.
            started = record.started_at_ms if record else min(as_of_ms, before.as_of_ms or 0)
            known = LaneProgress(started_at_ms=started, until_ms=started, alive_ms=started)
        states[number] = LaneState(number, known, known, known=number in before.lanes)
    return states


def _has_news(state: Pass) -> bool:
    """Tells whether a part is due: news, or an hour whose coverage is to be told."""
    before = state.before
    if before.as_of_ms is None or state.tables or state.rules != before.rules:
        return True
    if state.measured_until_ms != before.storage_until_ms:
        return True
    told_hour = floor_to(before.as_of_ms - MARGIN_MS, HOUR_MS)
    return floor_to(state.as_of_ms - MARGIN_MS, HOUR_MS) > told_hour or any(
        lane.has_news for lane in state.lanes.values()
    )


def _unsplit_since(lane: LaneState) -> int:
    """From when on records of a lane are in no segment."""
    if lane.failed:
        return 0
    return NEVER_MS if lane.unsplit_since_ms is None else lane.unsplit_since_ms


def _known(value: int | None) -> int:
    if value is None:
        message = "measured time has a start"
        raise AssertionError(message)
    return value

"""Which hours of a cluster are complete: all that was used in them is in usage files that count.

Nothing is taken on trust but what manifests say, and of these only such as were read with their
data files (`store.read_manifest(verify=True)`). What is missing leaves a hole in one of three
chains, and every hour that the hole may touch is incomplete:

* the cluster's: each entry begins as of when the one before it spoke, so a lost manifest cannot
  hide a lane of which it alone knew;
* each lane's: sequences of blocks follow one another without a gap;
* of time: windows of storage, partitions and brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from metering.events.manifests import (
    ClusterCoverage,
    LaneCoverage,
    StorageCoverage,
    UsageManifest,
)
from metering.events.times import HOUR_MS, format_ms, hours_of

# The most by which clocks of a cell may differ.
MARGIN_MS = 60_000

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class HourCompleteness:
    """Whether an hour [hour, hour + 1 h) is complete; `reason` says why not."""

    hour_ms: int
    complete: bool
    reason: str = ""


def completeness(
    manifests: Iterable[UsageManifest], *, cluster_id: str, since_ms: int, until_ms: int
) -> list[HourCompleteness]:
    """The completeness of every hour that [since, until) touches; order and repeats do not matter.

    The manifests must be those that were emitted from before the first hour on, until any time.
    """
    coverage = Coverage()
    for manifest in manifests:
        coverage.add(manifest)
    return coverage.hours(cluster_id, since_ms=since_ms, until_ms=until_ms)


@dataclass(slots=True)
class _Cluster:
    """What is known of a cluster so far. Sets, since a manifest may come twice."""

    spoken: set[tuple[int | None, int]] = field(default_factory=set)
    listed: set[tuple[int, frozenset[int]]] = field(default_factory=set)
    """Which lanes an entry has, by as of when the one before it spoke."""
    lanes: dict[int, set[LaneCoverage]] = field(default_factory=dict)
    storage: set[StorageCoverage] = field(default_factory=set)
    closed_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Hole:
    """Something of (since, until) may be missing."""

    since_ms: int
    until_ms: int | None
    reason: str

    def touches(self, start_ms: int, end_ms: int) -> bool:
        return self.since_ms < end_ms and (self.until_ms is None or self.until_ms > start_ms)


class Coverage:
    """Gathers manifests, of any number of clusters, and tells which hours are complete."""

    def __init__(self) -> None:
        self._clusters: dict[str, _Cluster] = {}

    def add(self, manifest: UsageManifest) -> None:
        """Adds a manifest whose data file is there and unharmed."""
        for entry in manifest.clusters:
            self.add_entry(entry)

    def add_entry(self, entry: ClusterCoverage) -> None:
        """Adds what a manifest says of one cluster."""
        cluster = self._clusters.setdefault(entry.cluster_id, _Cluster())
        cluster.spoken.add((entry.since_ms, entry.as_of_ms))
        if entry.since_ms is not None:
            incarnations = frozenset(lane.incarnation for lane in entry.lanes)
            cluster.listed.add((entry.since_ms, incarnations))
        for lane in entry.lanes:
            cluster.lanes.setdefault(lane.incarnation, set()).add(lane)
        if entry.storage is not None:
            cluster.storage.add(entry.storage)
        if entry.closed:
            cluster.closed_at_ms = max(cluster.closed_at_ms or 0, entry.as_of_ms)

    def clusters(self) -> list[str]:
        """All clusters that a manifest speaks of."""
        return sorted(self._clusters)

    def hours(self, cluster_id: str, *, since_ms: int, until_ms: int) -> list[HourCompleteness]:
        """The completeness of every hour that [since, until) touches."""
        cluster = self._clusters.get(cluster_id)
        if cluster is None:
            reason = "no manifest speaks of the cluster"
            return [HourCompleteness(hour, False, reason) for hour in hours_of(since_ms, until_ms)]
        holes = list(_holes(cluster))
        return [_completeness_of(hour, holes) for hour in hours_of(since_ms, until_ms)]


def _completeness_of(hour_ms: int, holes: list[_Hole]) -> HourCompleteness:
    for hole in holes:
        if hole.touches(hour_ms, hour_ms + HOUR_MS):
            return HourCompleteness(hour_ms, False, hole.reason)
    return HourCompleteness(hour_ms, True)


def _holes(cluster: _Cluster) -> Iterator[_Hole]:
    yield from _unspoken(cluster)
    for incarnation, entries in sorted(cluster.lanes.items()):
        yield from _unread(incarnation, entries)
        yield from _unended(incarnation, entries, cluster)
    yield from _unmeasured(cluster)


def _unspoken(cluster: _Cluster) -> Iterator[_Hole]:
    """Times of which no manifest tells what lanes there were."""
    first = [as_of for since, as_of in cluster.spoken if since is None]
    spans = sorted((since, as_of) for since, as_of in cluster.spoken if since is not None)
    reached = max(first) if first else spans[0][0]
    if not first:
        yield _Hole(0, reached + MARGIN_MS, f"no manifest from before {format_ms(reached)}")
    for since, as_of in spans:
        if since > reached:
            reason = f"no manifest between {format_ms(reached)} and {format_ms(since)}"
            yield _Hole(reached - MARGIN_MS, since + MARGIN_MS, reason)
        reached = max(reached, as_of)
    if cluster.closed_at_ms is None or cluster.closed_at_ms < reached:
        yield _Hole(reached - MARGIN_MS, None, f"no manifest after {format_ms(reached)}")


def _unread(incarnation: int, entries: set[LaneCoverage]) -> Iterator[_Hole]:
    """Times of a lane of which blocks may be missing."""
    # Of entries without news only the times differ.
    ordered = sorted(
        entries, key=lambda each: (each.first_sequence, each.since_ms, each.last_sequence)
    )
    first = ordered[0]
    started = min(each.started_at_ms for each in ordered)
    # Blocks are counted from 0 or 1, so a larger number follows an entry that is not here. Its
    # time tells it too, but that it may be the lane's start where the broker's clock lags.
    if first.first_sequence > 1 or first.since_ms > started:
        reason = f"lane {incarnation} is not covered from its start"
        yield _Hole(started - MARGIN_MS, first.since_ms + MARGIN_MS, reason)
    sequence, reached = first.last_sequence, first.until_ms
    for entry in ordered:
        if entry.first_sequence > sequence + 1:
            reason = f"lane {incarnation}: blocks {sequence + 1}..{entry.first_sequence - 1} lack"
            yield _Hole(reached - MARGIN_MS, entry.since_ms + MARGIN_MS, reason)
        sequence = max(sequence, entry.last_sequence)
        reached = max(reached, entry.until_ms)


def _unended(incarnation: int, entries: set[LaneCoverage], cluster: _Cluster) -> Iterator[_Hole]:
    """The time after the last that is known of a lane which did not end."""
    last = max((entry.last_sequence, entry.until_ms) for entry in entries)
    # Of a restored cluster lanes may go on that had been taken to have ended.
    if any(entry.ended and (entry.last_sequence, entry.until_ms) == last for entry in entries):
        return
    reached = max(entry.until_ms for entry in entries)
    reason = f"lane {incarnation} is not covered after {format_ms(reached)}"
    # An entry without the lane: when the one before it spoke, the lane had ended.
    without = [since for since, lanes in cluster.listed if incarnation not in lanes]
    over = min((since for since in without if since >= reached), default=None)
    yield _Hole(reached, None if over is None else over + MARGIN_MS, reason)


def _unmeasured(cluster: _Cluster) -> Iterator[_Hole]:
    """Times whose storage, partitions and brokers no slot tells of."""
    spans: list[Span] = sorted((each.since_ms, each.until_ms) for each in cluster.storage)
    if not spans:
        return
    # The chain begins with the cluster: there was nothing to measure before.
    reached = spans[0][1]
    for since, until in spans:
        if since > reached:
            reason = f"time from {format_ms(reached)} to {format_ms(since)} is not measured"
            yield _Hole(reached, since, reason)
        reached = max(reached, until)
    if cluster.closed_at_ms is None:
        yield _Hole(reached, None, f"time after {format_ms(reached)} is not measured")

"""Which hours of a cluster are complete: all usage in them is in usage files that count.

The only evidence are manifests, and only those that were read together with their data files
(`store.read_manifest(verify=True)`). A missing file leaves a hole in one of three chains, and
every hour that the hole may touch is incomplete:

* the cluster's entries: each begins (`since_ms`) where the one before it ended (`as_of_ms`), so a
  lost manifest cannot hide a lane that it alone lists;
* the blocks of each lane: their sequence numbers follow one another without a gap;
* the windows of time for which storage, partitions and brokers are measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from metering.events.manifests import (
    ClusterEntry,
    LaneEntry,
    StorageEntry,
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
    """The completeness of every hour that [since, until) touches.

    `manifests` are those that were emitted from before the first hour on, up to any time, in any
    order. One may come several times.
    """
    coverage = Coverage()
    for manifest in manifests:
        coverage.add(manifest)
    return coverage.hours(cluster_id, since_ms=since_ms, until_ms=until_ms)


@dataclass(slots=True)
class _Cluster:
    """What the manifests so far say of a cluster. It has sets because a manifest may come twice."""

    spoken: set[tuple[int | None, int]] = field(default_factory=set)
    listed: set[tuple[int, frozenset[int]]] = field(default_factory=set)
    """(`since_ms` of an entry, the incarnations that it lists)."""
    lanes: dict[int, set[LaneEntry]] = field(default_factory=dict)
    storage: set[StorageEntry] = field(default_factory=set)
    closed_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Hole:
    """A time (since, until) of which usage may be missing; until None: for ever."""

    since_ms: int
    until_ms: int | None
    reason: str

    def touches(self, start_ms: int, end_ms: int) -> bool:
        return self.since_ms < end_ms and (self.until_ms is None or self.until_ms > start_ms)


class Coverage:
    """Gathers manifests of any number of clusters, and says which of their hours are complete."""

    def __init__(self) -> None:
        self._clusters: dict[str, _Cluster] = {}

    def add(self, manifest: UsageManifest) -> None:
        """Adds a manifest whose data file is there and unharmed."""
        for entry in manifest.clusters:
            self.add_entry(entry)

    def add_entry(self, entry: ClusterEntry) -> None:
        """Adds a manifest's entry of one cluster."""
        cluster = self._clusters.setdefault(entry.cluster_id, _Cluster())
        cluster.spoken.add((entry.since_ms, entry.as_of_ms))
        if entry.since_ms is not None:
            incarnations = frozenset(lane.incarnation for lane in entry.lanes)
            cluster.listed.update((at, incarnations) for at in (entry.since_ms, *entry.joined_ms))
        for lane in entry.lanes:
            cluster.lanes.setdefault(lane.incarnation, set()).add(lane)
        if entry.storage is not None:
            cluster.storage.add(entry.storage)
        if entry.closed:
            cluster.closed_at_ms = max(cluster.closed_at_ms or 0, entry.as_of_ms)

    def clusters(self) -> list[str]:
        """Ids of all clusters that have an entry in a manifest."""
        return sorted(self._clusters)

    def hours(self, cluster_id: str, *, since_ms: int, until_ms: int) -> list[HourCompleteness]:
        """The completeness of every hour that [since, until) touches."""
        cluster = self._clusters.get(cluster_id)
        if cluster is None:
            reason = "no manifest has an entry of the cluster"
            return [HourCompleteness(hour, False, reason) for hour in hours_of(since_ms, until_ms)]
        holes = list(_holes(cluster))
        return [_completeness_of(hour, holes) for hour in hours_of(since_ms, until_ms)]


def _completeness_of(hour_ms: int, holes: list[_Hole]) -> HourCompleteness:
    for hole in holes:
        if hole.touches(hour_ms, hour_ms + HOUR_MS):
            return HourCompleteness(hour_ms, False, hole.reason)
    return HourCompleteness(hour_ms, True)


def _holes(cluster: _Cluster) -> Iterator[_Hole]:
    yield from _manifest_holes(cluster)
    for incarnation, entries in sorted(cluster.lanes.items()):
        yield from _block_holes(incarnation, entries)
        yield from _end_holes(incarnation, entries, cluster)
    yield from _time_holes(cluster)


def _manifest_holes(cluster: _Cluster) -> Iterator[_Hole]:
    """Holes in the chain of the cluster's entries: times whose lanes nobody knows."""
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


def _block_holes(incarnation: int, entries: set[LaneEntry]) -> Iterator[_Hole]:
    """Holes in the chain of a lane's blocks."""
    # Entries without new blocks have the same sequence numbers, so times decide their order.
    ordered = sorted(
        entries, key=lambda entry: (entry.first_sequence, entry.since_ms, entry.last_sequence)
    )
    first = ordered[0]
    started = min(entry.started_at_ms for entry in ordered)
    # Blocks are counted from 0 or 1, so a larger first number follows an entry that is missing.
    # A later first time says the same. It alone would not do: where the broker's clock is behind,
    # the time may be the lane's start although an entry is missing.
    if first.first_sequence > 1 or first.since_ms > started:
        reason = f"lane {incarnation} is not covered from its start"
        yield _Hole(started - MARGIN_MS, first.since_ms + MARGIN_MS, reason)
    sequence, reached = first.last_sequence, first.until_ms
    for entry in ordered:
        if entry.first_sequence > sequence + 1:
            missing = f"{sequence + 1}..{entry.first_sequence - 1}"
            reason = f"lane {incarnation}: blocks {missing} are missing"
            yield _Hole(reached - MARGIN_MS, entry.since_ms + MARGIN_MS, reason)
        sequence = max(sequence, entry.last_sequence)
        reached = max(reached, entry.until_ms)


def _end_holes(incarnation: int, entries: set[LaneEntry], cluster: _Cluster) -> Iterator[_Hole]:
    """The hole after the last entry of a lane that has no end."""
    last = max((entry.last_sequence, entry.until_ms) for entry in entries)
    # Only the last entry counts: lanes of a deleted cluster are taken to have ended, and may go on
    # after it is restored.
    if any(entry.ended and (entry.last_sequence, entry.until_ms) == last for entry in entries):
        return
    reached = max(entry.until_ms for entry in entries)
    reason = f"lane {incarnation} is not covered after {format_ms(reached)}"
    # An entry lists every lane but those that ended in an earlier one. So the first entry without
    # this lane shows that it had ended by then.
    without = [since for since, lanes in cluster.listed if incarnation not in lanes]
    over = min((since for since in without if since >= reached), default=None)
    yield _Hole(reached, None if over is None else over + MARGIN_MS, reason)


def _time_holes(cluster: _Cluster) -> Iterator[_Hole]:
    """Holes in the chain of windows for which storage, partitions and brokers are measured."""
    spans: list[Span] = sorted((storage.since_ms, storage.until_ms) for storage in cluster.storage)
    if not spans:
        return
    # The chain begins with the cluster, so before its first window there is no hole.
    reached = spans[0][1]
    for since, until in spans:
        if since > reached:
            reason = f"time from {format_ms(reached)} to {format_ms(since)} is not measured"
            yield _Hole(reached, since, reason)
        reached = max(reached, until)
    if cluster.closed_at_ms is None:
        yield _Hole(reached, None, f"time after {format_ms(reached)} is not measured")


def join_entries(entries: Iterable[ClusterEntry]) -> list[ClusterEntry]:
    """Fewer entries of one cluster that say the same: `Coverage` has the same answers by both.

    Entries that follow one another, with the same lanes, become one. So a cluster has an entry for
    each change of its lanes.
    """
    joined: list[ClusterEntry] = []
    # The place in `joined` of an entry that ends at a time.
    ending: dict[int, int] = {}
    ordered = sorted(set(entries), key=lambda entry: (entry.since_ms or -1, entry.as_of_ms))
    for entry in ordered:
        place = ending.pop(entry.since_ms, None) if entry.since_ms is not None else None
        both = None if place is None else _joined_entry(joined[place], entry)
        if place is None or both is None:
            place = len(joined)
            joined.append(entry)
        else:
            joined[place] = both
        ending[entry.as_of_ms] = place
    return joined


def _joined_entry(one: ClusterEntry, after: ClusterEntry) -> ClusterEntry | None:
    """The entry that says what two say that follow one another; None where none does."""
    # The first entry of a cluster stays by itself, because it says since when the cluster is.
    if one.since_ms is None or after.since_ms is None or one.closed:
        return None
    if (one.organization_id, len(one.lanes)) != (after.organization_id, len(after.lanes)):
        return None
    storage = _joined_storage(one.storage, after.storage)
    if storage is None and one.storage is not after.storage:
        return None
    later = {lane.incarnation: lane for lane in after.lanes}
    lanes = [_joined_lane(lane, later.get(lane.incarnation)) for lane in one.lanes]
    whole = tuple(lane for lane in lanes if lane is not None)
    if len({lane.incarnation for lane in whole}) != len(after.lanes):
        return None
    return replace(
        one,
        as_of_ms=after.as_of_ms,
        lanes=whole,
        storage=storage,
        closed=after.closed,
        joined_ms=(*one.joined_ms, after.since_ms, *after.joined_ms),
    )


def _joined_storage(one: StorageEntry | None, after: StorageEntry | None) -> StorageEntry | None:
    if one is None or after is None or one.until_ms != after.since_ms:
        return None
    return replace(one, until_ms=after.until_ms)


def _joined_lane(one: LaneEntry, after: LaneEntry | None) -> LaneEntry | None:
    if after is None or one.ended or after.until_ms < one.until_ms:
        return None
    follows = (one.started_at_ms, one.last_sequence + 1, one.until_ms)
    if follows != (after.started_at_ms, after.first_sequence, after.since_ms):
        return None
    return replace(
        one,
        ended=after.ended,
        last_sequence=after.last_sequence,
        until_ms=after.until_ms,
        files=(*one.files, *after.files),
    )

"""How far each cluster is metered: what the agent keeps between passes and between restarts.

Progress only saves work: lost, it is rebuilt from manifests (`recovery`), and what is read twice
yields the same rows. It is written after the manifest with the same coverage, so that it never
claims more than manifests do, and before indexes are dropped.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metering.agent.rules import Rule, RuleHistory
from metering.events.errors import UsageFormatError

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneProgress:
    """How far a lane is metered."""

    started_at_ms: int
    sequence: int = 0
    """Every block up to this sequence number is in usage files."""
    file: int = 0
    """Lane files with smaller numbers are not needed any more."""
    until_ms: int
    """All usage up to this time is in usage files."""
    alive_ms: int
    """The last time at which its broker was known to run."""
    ended: bool = False
    """Nothing follows in this lane."""
    assumed: bool = False
    """It is taken to have ended because its cluster is deleted and has no brokers. If the cluster
    is restored, more may follow."""
    whole: bool = False
    """No row of the file that goes on is in usage files, as far as is known."""

    @property
    def is_between_files(self) -> bool:
        """Whether the next file can be summed up as a whole."""
        return self.whole or self.sequence == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProgress:
    """How far a cluster is metered."""

    organization_id: str = ""
    """The organization that owns the cluster."""
    as_of_ms: int | None = None
    """`as_of_ms` of the last entry in a manifest; None before the first."""
    storage_until_ms: int | None = None
    """The time at which the next slot begins; None where there was nothing to measure yet."""
    closed: bool = False
    """The cluster is gone, and a manifest says so."""
    lanes: Mapping[int, LaneProgress] = field(default_factory=dict)
    """Lanes by incarnation. An ended lane stays until slots cover all the time that it ran."""
    over: frozenset[int] = frozenset()
    """Incarnations whose lanes are wholly recorded."""
    rules: Mapping[str, RuleHistory] = field(default_factory=dict)
    """Retention rules of topics, by topic id."""


# Releases before version 2 of usage rows refuse a lane with other members. So what else is known of
# lanes lies beside them.
_LANE_MEMBERS = tuple(name for name in LaneProgress.__slots__ if name != "whole")


def merge_progress(one: ClusterProgress, other: ClusterProgress) -> ClusterProgress:
    """The union of two records of one cluster: each lane at the further of its two places.

    Two agents may save progress of one cluster; merging never moves it back.
    """
    over = one.over | other.over
    lanes: dict[int, LaneProgress] = {}
    for incarnation, lane in [*one.lanes.items(), *other.lanes.items()]:
        earlier = lanes.get(incarnation, lane)
        if incarnation not in over:
            lanes[incarnation] = max(earlier, lane, key=_lane_place)
    later = max(one, other, key=_measured_place)
    return ClusterProgress(
        organization_id=one.organization_id or other.organization_id,
        as_of_ms=_later_of(one.as_of_ms, other.as_of_ms),
        storage_until_ms=later.storage_until_ms,
        closed=one.closed or other.closed,
        lanes=lanes,
        over=over,
        rules=later.rules,
    )


def encode_progress(progress: ClusterProgress) -> bytes:
    """Progress as JSON."""
    plain = {
        "version": VERSION,
        "organization_id": progress.organization_id,
        "as_of_ms": progress.as_of_ms,
        "storage_until_ms": progress.storage_until_ms,
        "closed": progress.closed,
        "lanes": {
            str(incarnation): {name: getattr(lane, name) for name in _LANE_MEMBERS}
            for incarnation, lane in sorted(progress.lanes.items())
        },
        "whole": sorted(number for number, lane in progress.lanes.items() if lane.whole),
        "over": list(_as_ranges(progress.over)),
        "rules": {topic: _rule_json(history) for topic, history in sorted(progress.rules.items())},
    }
    return json.dumps(plain, separators=(",", ":")).encode()


def parse_progress(data: bytes) -> ClusterProgress:
    """Progress from its JSON. Raises `UsageFormatError`."""
    try:
        plain: dict[str, Any] = json.loads(data)
        if plain["version"] != VERSION:
            message = f"progress of version {plain['version']!r}, this release knows {VERSION}"
            raise UsageFormatError(message)
        whole = frozenset(plain.get("whole", ()))
        return ClusterProgress(
            organization_id=plain["organization_id"],
            as_of_ms=plain["as_of_ms"],
            storage_until_ms=plain["storage_until_ms"],
            closed=plain["closed"],
            lanes={
                int(number): LaneProgress(**lane, whole=int(number) in whole)
                for number, lane in plain["lanes"].items()
            },
            over=frozenset(n for first, last in plain["over"] for n in range(first, last + 1)),
            rules={topic: _parse_rule(history) for topic, history in plain["rules"].items()},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, UsageFormatError):
            raise
        message = f"not a progress record: {type(error).__name__}: {error}"
        raise UsageFormatError(message) from error


class ProgressFolder:
    """One JSON file for each cluster, in a folder on shared storage, for any number of agents."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def clusters(self) -> list[str]:
        """Ids of all clusters that have a record."""
        with suppress(FileNotFoundError):
            return sorted(path.stem for path in self._folder.glob("*.json"))
        return []

    def load(self, cluster_id: str) -> ClusterProgress | None:
        """A cluster's record; None where there is none. Raises `UsageFormatError`, `OSError`."""
        try:
            return parse_progress(self._record_path(cluster_id).read_bytes())
        except FileNotFoundError:
            return None

    def save(self, cluster_id: str, progress: ClusterProgress) -> ClusterProgress:
        """Merges progress into a cluster's record, durably; returns the record. Raises `OSError`.

        A record that cannot be read is replaced, because progress only saves work.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._hold_lock(cluster_id):
            stored: ClusterProgress | None = None
            with suppress(UsageFormatError):
                stored = self.load(cluster_id)
            together = progress if stored is None else merge_progress(stored, progress)
            if together != stored:
                _replace_durably(self._record_path(cluster_id), encode_progress(together))
        return together

    def _record_path(self, cluster_id: str) -> Path:
        return self._folder / f"{cluster_id}.json"

    @contextmanager
    def _hold_lock(self, cluster_id: str) -> Iterator[None]:
        # One lock file for all clusters, so that none is left behind for each deleted cluster. The
        # lock is held for one write only.
        with (self._folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _measured_place(progress: ClusterProgress) -> tuple[int, int]:
    """Orders records by how far slots go, then by their time: rules change between slots too."""
    until_ms, as_of_ms = progress.storage_until_ms, progress.as_of_ms
    return -1 if until_ms is None else until_ms, -1 if as_of_ms is None else as_of_ms


def _lane_place(lane: LaneProgress) -> tuple[int, bool, int, bool]:
    return lane.sequence, lane.ended, lane.until_ms, lane.whole


def _later_of(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _rule_json(history: RuleHistory) -> list[Any]:
    before, now = history.before, history.now
    return [
        [before.retention_ms, before.retention_bytes],
        [now.retention_ms, now.retention_bytes],
        history.since_ms,
    ]


def _parse_rule(plain: list[Any]) -> RuleHistory:
    before, now, since_ms = plain
    return RuleHistory(Rule(*before), Rule(*now), since_ms)


def _as_ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Whole numbers as ranges [first, last], in order."""
    first: int | None = None
    last = 0
    for number in sorted(numbers):
        if first is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            yield first, last
        first = last = number
    if first is not None:
        yield first, last


def _replace_durably(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

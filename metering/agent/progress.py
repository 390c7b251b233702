"""How far each cluster is metered: what the agent keeps between two passes and two lives.

Progress only spares work: lost, it is made anew from what manifests say (`recovery`), and whatever
is read twice yields the same rows. It is written after the manifest that tells what it claims, and
before indexes are dropped.
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

from metering.agent.rules import RuleHistory
from metering.agent.storage import Rule
from metering.events.errors import UsageFormatError

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneProgress:
    """How far a lane is metered."""

    started_at_ms: int
    sequence: int = 0
    """Every block up to here is in usage files."""
    file: int = 0
    """Files before this one are not needed any more."""
    until_ms: int
    """All usage up to then is in usage files."""
    alive_ms: int
    """Until when its broker was known to run."""
    ended: bool = False
    """Nothing will follow."""
    assumed: bool = False
    """It ended only because nobody runs the deleted cluster: should that be restored, there may be
    more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProgress:
    """How far a cluster is metered."""

    organization_id: str = ""
    """Whose it is."""
    as_of_ms: int | None = None
    """When the last entry in a manifest spoke."""
    storage_until_ms: int | None = None
    """Where the next slot begins; None where there was nothing to measure yet."""
    closed: bool = False
    """The cluster is gone, and a manifest says so."""
    lanes: Mapping[int, LaneProgress] = field(default_factory=dict)
    """By incarnation. One that ended stays until slots tell of all its time."""
    over: frozenset[int] = frozenset()
    """Incarnations of which everything is told."""
    rules: Mapping[str, RuleHistory] = field(default_factory=dict)
    """What topics keep, by topic id."""


def merged(one: ClusterProgress, other: ClusterProgress) -> ClusterProgress:
    """What both say together: each lane at the further of two places. Never goes back."""
    over = one.over | other.over
    lanes: dict[int, LaneProgress] = {}
    for incarnation, lane in [*one.lanes.items(), *other.lanes.items()]:
        known = lanes.get(incarnation, lane)
        if incarnation not in over:
            lanes[incarnation] = max(known, lane, key=_further)
    later = max(one, other, key=_looked)
    return ClusterProgress(
        organization_id=one.organization_id or other.organization_id,
        as_of_ms=_latest(one.as_of_ms, other.as_of_ms),
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
            str(incarnation): {name: getattr(lane, name) for name in LaneProgress.__slots__}
            for incarnation, lane in sorted(progress.lanes.items())
        },
        "over": list(_ranges(progress.over)),
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
        return ClusterProgress(
            organization_id=plain["organization_id"],
            as_of_ms=plain["as_of_ms"],
            storage_until_ms=plain["storage_until_ms"],
            closed=plain["closed"],
            lanes={int(number): LaneProgress(**lane) for number, lane in plain["lanes"].items()},
            over=frozenset(n for first, last in plain["over"] for n in range(first, last + 1)),
            rules={topic: _rule(history) for topic, history in plain["rules"].items()},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, UsageFormatError):
            raise
        message = f"not a progress record: {type(error).__name__}: {error}"
        raise UsageFormatError(message) from error


class ProgressFolder:
    """A JSON file a cluster, in a folder on shared storage. For any number of agents."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def clusters(self) -> list[str]:
        """All clusters of which there is a record."""
        with suppress(FileNotFoundError):
            return sorted(path.stem for path in self._folder.glob("*.json"))
        return []

    def load(self, cluster_id: str) -> ClusterProgress | None:
        """A cluster's record; None where there is none. Raises `UsageFormatError`, `OSError`."""
        try:
            return parse_progress(self._path(cluster_id).read_bytes())
        except FileNotFoundError:
            return None

    def save(self, cluster_id: str, progress: ClusterProgress) -> ClusterProgress:
        """Adds to a cluster's record, durably; gives what it says now. Raises `OSError`.

        A record that cannot be read is replaced: all that it can spare is work.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._locked(cluster_id):
            stored: ClusterProgress | None = None
            with suppress(UsageFormatError):
                stored = self.load(cluster_id)
            together = progress if stored is None else merged(stored, progress)
            if together != stored:
                _replace_durably(self._path(cluster_id), encode_progress(together))
        return together

    def _path(self, cluster_id: str) -> Path:
        return self._folder / f"{cluster_id}.json"

    @contextmanager
    def _locked(self, cluster_id: str) -> Iterator[None]:
        # One lock for all clusters, so that no lock files are left: it is held for one write.
        del cluster_id
        with (self._folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _looked(progress: ClusterProgress) -> tuple[int, int]:
    """How far slots go, and when somebody looked: rules change between two slots, too."""
    until_ms, as_of_ms = progress.storage_until_ms, progress.as_of_ms
    return -1 if until_ms is None else until_ms, -1 if as_of_ms is None else as_of_ms


def _further(lane: LaneProgress) -> tuple[int, bool, int]:
    return lane.sequence, lane.ended, lane.until_ms


def _latest(one: int | None, other: int | None) -> int | None:
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


def _rule(plain: list[Any]) -> RuleHistory:
    before, now, since_ms = plain
    return RuleHistory(Rule(*before), Rule(*now), since_ms)


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Whole numbers as ranges with both ends in them."""
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

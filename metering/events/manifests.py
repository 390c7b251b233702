"""Manifests: what a usage file holds, and which clusters, lanes and times it covers.

A manifest is JSON beside its data file, written after it: a data file without a manifest does not
count. `docs/reference/usage-files.md` lists its members.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import accumulate
from typing import Any

from metering.events.errors import UsageFormatError

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneFile:
    """A lane file whose rows are sums over all of it: its number, and its blocks first..last."""

    file: int
    first_sequence: int
    last_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneEntry:
    """All usage of a lane in (since, until] lies in blocks first..last of this file.

    `first_sequence` is one more than `last_sequence` of the entry before. Where there is nothing
    new, `last_sequence` is one less than `first_sequence`. Times of blocks come from brokers'
    clocks, those of a lane without new blocks from the agent's.
    """

    incarnation: int
    started_at_ms: int
    ended: bool
    """Nothing follows in this lane."""
    first_sequence: int
    last_sequence: int
    since_ms: int
    until_ms: int
    files: tuple[LaneFile, ...] = ()
    """The files whose rows are of version 2; rows of other blocks are of version 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageEntry:
    """The file has all storage, partition and broker time of [since, until).

    The two are equal where there is nothing new.
    """

    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEntry:
    """A manifest's entry of one cluster.

    `lanes` has every lane of the cluster but those that ended in an earlier entry. An entry of a
    replacement may stand for several that followed one another with the same lanes.
    """

    cluster_id: str
    organization_id: str
    since_ms: int | None
    """`as_of_ms` of the entry before this one; None in a cluster's first entry."""
    as_of_ms: int
    lanes: tuple[LaneEntry, ...] = ()
    storage: StorageEntry | None = None
    """None where the cluster never had a topic or a broker."""
    closed: bool = False
    """The cluster is gone from its cell, and nothing follows."""
    joined_ms: tuple[int, ...] = ()
    """`since_ms` of the further entries that this one stands for, in order."""


@dataclass(frozen=True, slots=True)
class ReplacedFile:
    """A usage file whose rows another file has too, as its own manifest described it.

    The windows are those of `UsageManifest`.
    """

    key: str
    size_bytes: int
    sha256: str
    rows: int
    window_start_ms: int
    window_end_ms: int
    emitted_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageManifest:
    """The manifest of a usage file.

    `window_start_ms` is the smallest and `window_end_ms` the largest of its rows; both are 0
    without rows.
    """

    cell: str
    key: str
    size_bytes: int
    sha256: str
    """64 hex digits."""
    rows: int
    window_start_ms: int
    window_end_ms: int
    emitted_at_ms: int
    agent: str
    clusters: tuple[ClusterEntry, ...] = ()
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topics' names by `<cluster id>/<topic id>`."""
    replaces: tuple[ReplacedFile, ...] = ()
    """The files in whose place this one counts. It may have several entries of a cluster."""


def encode_manifest(manifest: UsageManifest) -> bytes:
    """The manifest as JSON; equal manifests give equal bytes."""
    plain = {
        "version": VERSION,
        "cell": manifest.cell,
        "key": manifest.key,
        "size_bytes": manifest.size_bytes,
        "sha256": manifest.sha256,
        "rows": manifest.rows,
        "window_start_ms": manifest.window_start_ms,
        "window_end_ms": manifest.window_end_ms,
        "emitted_at_ms": manifest.emitted_at_ms,
        "agent": manifest.agent,
        "clusters": [_cluster_json(cluster) for cluster in manifest.clusters],
        "topics": dict(sorted(manifest.topics.items())),
    }
    if manifest.replaces:
        plain["replaces"] = [astuple(file) for file in manifest.replaces]
    return json.dumps(plain, separators=(",", ":")).encode()


def parse_manifest(data: bytes) -> UsageManifest:
    """A manifest from its JSON. Raises `UsageFormatError`."""
    try:
        plain = json.loads(data)
        if plain["version"] != VERSION:
            message = f"a manifest of version {plain['version']!r}, this release knows {VERSION}"
            raise UsageFormatError(message)
        return UsageManifest(
            cell=_text(plain, "cell"),
            key=_text(plain, "key"),
            size_bytes=_count(plain, "size_bytes"),
            sha256=_text(plain, "sha256"),
            rows=_count(plain, "rows"),
            window_start_ms=_count(plain, "window_start_ms"),
            window_end_ms=_count(plain, "window_end_ms"),
            emitted_at_ms=_count(plain, "emitted_at_ms"),
            agent=_text(plain, "agent"),
            clusters=tuple(_parse_cluster(cluster) for cluster in plain["clusters"]),
            topics={str(key): str(name) for key, name in plain["topics"].items()},
            replaces=tuple(map(_parse_replaced, plain.get("replaces", ()))),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, UsageFormatError):
            raise
        message = f"not a manifest: {type(error).__name__}: {error}"
        raise UsageFormatError(message) from error


def matches_manifest(manifest: UsageManifest, data: bytes) -> bool:
    """Whether `data` is the data file that the manifest was written for, by size and digest."""
    return len(data) == manifest.size_bytes and hashlib.sha256(data).hexdigest() == manifest.sha256


def _cluster_json(cluster: ClusterEntry) -> dict[str, Any]:
    storage = cluster.storage
    plain: dict[str, Any] = {
        "cluster_id": cluster.cluster_id,
        "organization_id": cluster.organization_id,
        "since_ms": cluster.since_ms,
        "as_of_ms": cluster.as_of_ms,
        "lanes": [_lane_json(lane) for lane in cluster.lanes],
        "storage": storage and {"since_ms": storage.since_ms, "until_ms": storage.until_ms},
        "closed": cluster.closed,
    }
    if cluster.joined_ms:
        plain["joined_ms"] = _differences(cluster.joined_ms)
    return plain


def _differences(times: Sequence[int]) -> list[int]:
    """The first of some times, then how much later than the one before each other is."""
    return [after - before for before, after in zip((0, *times[:-1]), times, strict=True)]


def _lane_json(lane: LaneEntry) -> dict[str, Any]:
    plain = {name: getattr(lane, name) for name in LaneEntry.__slots__ if name != "files"}
    if lane.files:
        plain["files"] = [
            [file.file, file.first_sequence, file.last_sequence] for file in lane.files
        ]
    return plain


def _parse_cluster(plain: Mapping[str, Any]) -> ClusterEntry:
    since = plain["since_ms"]
    storage = plain["storage"]
    return ClusterEntry(
        cluster_id=_text(plain, "cluster_id"),
        organization_id=_text(plain, "organization_id"),
        since_ms=None if since is None else _count(plain, "since_ms"),
        as_of_ms=_count(plain, "as_of_ms"),
        lanes=_parse_lanes(plain["lanes"]),
        storage=None
        if storage is None
        else StorageEntry(
            since_ms=_count(storage, "since_ms"), until_ms=_count(storage, "until_ms")
        ),
        closed=_flag(plain, "closed"),
        joined_ms=tuple(accumulate(map(int, plain.get("joined_ms", ())))),
    )


def _parse_replaced(plain: Sequence[Any]) -> ReplacedFile:
    named = dict(zip(ReplacedFile.__slots__, plain, strict=True))
    return ReplacedFile(
        key=_text(named, "key"),
        size_bytes=_count(named, "size_bytes"),
        sha256=_text(named, "sha256"),
        rows=_count(named, "rows"),
        window_start_ms=_count(named, "window_start_ms"),
        window_end_ms=_count(named, "window_end_ms"),
        emitted_at_ms=_count(named, "emitted_at_ms"),
    )


def _parse_lanes(plain: Sequence[Mapping[str, Any]]) -> tuple[LaneEntry, ...]:
    return tuple(
        LaneEntry(
            incarnation=_count(lane, "incarnation"),
            started_at_ms=_count(lane, "started_at_ms"),
            ended=_flag(lane, "ended"),
            first_sequence=_count(lane, "first_sequence"),
            last_sequence=_whole(lane, "last_sequence"),
            since_ms=_whole(lane, "since_ms"),
            until_ms=_whole(lane, "until_ms"),
            files=tuple(map(_parse_file, lane.get("files", ()))),
        )
        for lane in plain
    )


def _parse_file(plain: Sequence[Any]) -> LaneFile:
    names = tuple(LaneFile.__slots__)
    numbers = dict(zip(names, plain, strict=True))
    return LaneFile(**{name: _count(numbers, name) for name in names})


def _whole(plain: Mapping[str, Any], name: str) -> int:
    value = plain[name]
    if type(value) is not int:
        message = f"{name} is {value!r}, want a whole number"
        raise UsageFormatError(message)
    return value


def _count(plain: Mapping[str, Any], name: str) -> int:
    value = _whole(plain, name)
    if value < 0:
        message = f"{name} is {value}, want 0 or more"
        raise UsageFormatError(message)
    return value


def _text(plain: Mapping[str, Any], name: str) -> str:
    value = plain[name]
    if not isinstance(value, str):
        message = f"{name} is {value!r}, want a text"
        raise UsageFormatError(message)
    return value


def _flag(plain: Mapping[str, Any], name: str) -> bool:
    value = plain[name]
    if not isinstance(value, bool):
        message = f"{name} is {value!r}, want true or false"
        raise UsageFormatError(message)
    return value

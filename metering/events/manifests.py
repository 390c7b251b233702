"""Manifests: what a usage file holds, and which part of whose usage that is.

A manifest is JSON beside its data file, written after it: a data file without a manifest does not
count. `docs/reference/usage-files.md` lists its members.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metering.events.errors import UsageFormatError

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCoverage:
    """All usage of a lane in (since, until] lies in blocks first..last of this file.

    `first_sequence` is one more than the last sequence of the entry before, also where there is
    nothing new: then `last_sequence` is smaller than it. Times are the brokers' for blocks and the
    agent's for a lane that is quiet.
    """

    incarnation: int
    started_at_ms: int
    ended: bool
    """Nothing will follow."""
    first_sequence: int
    last_sequence: int
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCoverage:
    """All usage by time in [since, until) is in this file; equal where there is nothing new."""

    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCoverage:
    """What a file says of a cluster.

    `lanes` has every lane but those whose end an entry before this one tells.
    """

    cluster_id: str
    organization_id: str
    since_ms: int | None
    """As of when the entry before this one spoke; None in a cluster's first."""
    as_of_ms: int
    lanes: tuple[LaneCoverage, ...] = ()
    storage: StorageCoverage | None = None
    """None where the cluster never had a topic or a broker."""
    closed: bool = False
    """The cluster is gone, and nothing will follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageManifest:
    """A usage file's manifest. Windows are the smallest and largest of its rows, 0 without rows."""

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
    clusters: tuple[ClusterCoverage, ...] = ()
    topics: Mapping[str, str] = field(default_factory=dict)
    """Names by `<cluster id>/<topic id>`."""


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
            clusters=tuple(_cluster(cluster) for cluster in plain["clusters"]),
            topics={str(key): str(name) for key, name in plain["topics"].items()},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, UsageFormatError):
            raise
        message = f"not a manifest: {type(error).__name__}: {error}"
        raise UsageFormatError(message) from error


def matches(manifest: UsageManifest, data: bytes) -> bool:
    """Tells whether this is the data file that the manifest was written for."""
    return len(data) == manifest.size_bytes and hashlib.sha256(data).hexdigest() == manifest.sha256


def _cluster_json(cluster: ClusterCoverage) -> dict[str, Any]:
    storage = cluster.storage
    return {
        "cluster_id": cluster.cluster_id,
        "organization_id": cluster.organization_id,
        "since_ms": cluster.since_ms,
        "as_of_ms": cluster.as_of_ms,
        "lanes": [
            {name: getattr(lane, name) for name in LaneCoverage.__slots__} for lane in cluster.lanes
        ],
        "storage": storage and {"since_ms": storage.since_ms, "until_ms": storage.until_ms},
        "closed": cluster.closed,
    }


def _cluster(plain: Mapping[str, Any]) -> ClusterCoverage:
    since = plain["since_ms"]
    storage = plain["storage"]
    return ClusterCoverage(
        cluster_id=_text(plain, "cluster_id"),
        organization_id=_text(plain, "organization_id"),
        since_ms=None if since is None else _count(plain, "since_ms"),
        as_of_ms=_count(plain, "as_of_ms"),
        lanes=_lanes(plain["lanes"]),
        storage=None
        if storage is None
        else StorageCoverage(
            since_ms=_count(storage, "since_ms"), until_ms=_count(storage, "until_ms")
        ),
        closed=_flag(plain, "closed"),
    )


def _lanes(plain: Sequence[Mapping[str, Any]]) -> tuple[LaneCoverage, ...]:
    return tuple(
        LaneCoverage(
            incarnation=_count(each, "incarnation"),
            started_at_ms=_count(each, "started_at_ms"),
            ended=_flag(each, "ended"),
            first_sequence=_count(each, "first_sequence"),
            last_sequence=_whole(each, "last_sequence"),
            since_ms=_whole(each, "since_ms"),
            until_ms=_whole(each, "until_ms"),
        )
        for each in plain
    )


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

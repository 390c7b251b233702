"""Judges which hours of clusters are complete, from the coverage of the files that were taken in.

Only hours that new files cover are judged again: what is missing of an hour can come only with a
file that covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection

from metering.events.coverage import MARGIN_MS, Coverage
from metering.events.manifests import ClusterEntry, LaneEntry, LaneFile, StorageEntry
from metering.periods import HOUR_MS, from_ms
from metering.services.absorbing import Touched

# New coverage can change hours before it: an hour is complete only once coverage reaches a margin
# beyond its end, and a hole reaches a margin beyond its ends.
REACH_MS = 2 * MARGIN_MS
# A file judges no hour that is this much older: its month is closed, and a lane's first entry may
# begin long before the lane.
LOOK_BACK_MS = 40 * 24 * HOUR_MS

UPSERT_HOURS = """
INSERT INTO metering_hourstanding AS known (organization_id, cluster_id, hour, complete, reason)
SELECT * FROM unnest(%s::text[], %s::text[], %s::timestamptz[], %s::boolean[], %s::text[])
ON CONFLICT (cluster_id, hour)
DO UPDATE SET complete = EXCLUDED.complete, reason = EXCLUDED.reason,
    organization_id = EXCLUDED.organization_id
WHERE (known.complete, known.reason) IS DISTINCT FROM (EXCLUDED.complete, EXCLUDED.reason)
"""


# The entries of this time, and those just before and after it, which continue the chains.
ENTRIES = """
SELECT wanted.cluster_id, known.entry::text
FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS wanted (cluster_id, from_ms, to_ms),
    LATERAL (
        SELECT entry, as_of_ms FROM metering_filecoverage AS of_file
        WHERE of_file.cluster_id = wanted.cluster_id AND as_of_ms >= from_ms AND since_ms <= to_ms
    ) AS known
ORDER BY wanted.cluster_id, known.as_of_ms
"""
# Clusters whose entries are read at once.
CLUSTERS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class _Span:
    """The time of a cluster whose hours are judged, from the beginning of an hour on."""

    cluster_id: str
    start_ms: int
    end_ms: int


def judge_hours(touched: Iterable[Touched]) -> int:
    """Judges every hour that new files say something about; returns how many."""
    spans: dict[str, tuple[int, int]] = {}
    for part in touched:
        since, until = spans.get(part.cluster_id, (part.since_ms, part.until_ms))
        spans[part.cluster_id] = (min(since, part.since_ms), max(until, part.until_ms))
    periods = [
        _Span(
            cluster_id,
            (max(since_ms, until_ms - LOOK_BACK_MS) - REACH_MS) // HOUR_MS * HOUR_MS,
            max(until_ms, since_ms + 1),
        )
        for cluster_id, (since_ms, until_ms) in sorted(spans.items())
    ]
    rows: list[tuple[str, str, object, bool, str]] = []
    for first in range(0, len(periods), CLUSTERS_AT_ONCE):
        of_these = periods[first : first + CLUSTERS_AT_ONCE]
        entries = _read_entries(of_these)
        for span in of_these:
            rows += _judge_cluster(span, entries[span.cluster_id])
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(UPSERT_HOURS, [list(column) for column in zip(*rows, strict=True)])
    return len(rows)


def _read_entries(spans: Iterable[_Span]) -> dict[str, list[ClusterEntry]]:
    """By cluster, the entries that say something about its span, in the order of their times."""
    bounds = [(span.cluster_id, span.start_ms - REACH_MS, span.end_ms + HOUR_MS) for span in spans]
    entries: dict[str, list[ClusterEntry]] = {cluster_id: [] for cluster_id, *_ in bounds}
    with connection.cursor() as cursor:
        cursor.execute(ENTRIES, [list(column) for column in zip(*bounds, strict=True)])
        for cluster_id, plain in cursor.fetchall():
            entries[cluster_id] += entries_of(orjson.loads(plain))
    return entries


def _judge_cluster(
    span: _Span, entries: Iterable[ClusterEntry]
) -> list[tuple[str, str, object, bool, str]]:
    coverage, owner, born_ms = Coverage(), "", None
    last_ms = span.end_ms
    for entry in entries:
        owner = entry.organization_id
        last_ms = max(last_ms, entry.as_of_ms)
        coverage.add_entry(entry)
        if entry.since_ms is None:
            born_ms = _first_time(entry)
    start_ms = span.start_ms
    if born_ms is not None:
        start_ms = max(start_ms, born_ms // HOUR_MS * HOUR_MS)
    until_ms = min(span.end_ms + MARGIN_MS, last_ms)
    hours = coverage.hours(span.cluster_id, since_ms=start_ms, until_ms=until_ms)
    return [
        (owner, span.cluster_id, from_ms(hour.hour_ms), hour.complete, hour.reason)
        for hour in hours
    ]


def entries_of(plain: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[ClusterEntry]:
    """A manifest's entries of a cluster, from the JSON in `FileCoverage.entry`."""
    return [_entry_of(plain)] if isinstance(plain, Mapping) else [_entry_of(one) for one in plain]


def _entry_of(plain: Mapping[str, Any]) -> ClusterEntry:
    storage = plain["storage"]
    return ClusterEntry(
        **{
            **plain,
            "lanes": tuple(map(_lane_of, plain["lanes"])),
            "storage": None if storage is None else StorageEntry(**storage),
            "joined_ms": tuple(plain.get("joined_ms", ())),
        }
    )


def _lane_of(plain: Mapping[str, Any]) -> LaneEntry:
    # Entries from before version 2 have no files.
    files = tuple(LaneFile(**file) for file in plain.get("files", ()))
    return LaneEntry(**{**plain, "files": files})


def _first_time(entry: ClusterEntry) -> int:
    """The earliest time in a cluster's first entry, in milliseconds since 1970."""
    times = [entry.as_of_ms, *(lane.started_at_ms for lane in entry.lanes)]
    if entry.storage is not None:
        times.append(entry.storage.since_ms)
    return min(times)

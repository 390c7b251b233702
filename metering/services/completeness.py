"""Judges which hours of clusters are complete, from the coverage of the files that were taken in.

Only hours that new files cover are judged again: what is missing of an hour can come only with a
file that covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from metering.events.coverage import MARGIN_MS, Coverage
from metering.events.manifests import ClusterEntry, LaneEntry, StorageEntry
from metering.models import FileCoverage
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


def judge_hours(touched: Iterable[Touched]) -> int:
    """Judges every hour that new files say something about; returns how many."""
    spans: dict[str, tuple[int, int]] = {}
    for span in touched:
        since, until = spans.get(span.cluster_id, (span.since_ms, span.until_ms))
        spans[span.cluster_id] = (min(since, span.since_ms), max(until, span.until_ms))
    rows: list[tuple[str, str, object, bool, str]] = []
    for cluster_id, (since_ms, until_ms) in sorted(spans.items()):
        rows += _judge_cluster(cluster_id, since_ms, until_ms)
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(UPSERT_HOURS, [list(column) for column in zip(*rows, strict=True)])
    return len(rows)


def _judge_cluster(
    cluster_id: str, since_ms: int, until_ms: int
) -> list[tuple[str, str, object, bool, str]]:
    start_ms = (max(since_ms, until_ms - LOOK_BACK_MS) - REACH_MS) // HOUR_MS * HOUR_MS
    end_ms = max(until_ms, since_ms + 1)
    last_ms = end_ms
    # The entries of this time, and those just before and after it, which continue the chains.
    entries = FileCoverage.objects.filter(
        cluster_id=cluster_id, as_of_ms__gte=start_ms - REACH_MS, since_ms__lte=end_ms + HOUR_MS
    )
    coverage, owner, born_ms = Coverage(), "", None
    for plain in entries.order_by("as_of_ms").values_list("entry", flat=True):
        entry = entry_of(plain)
        owner = entry.organization_id
        last_ms = max(last_ms, entry.as_of_ms)
        coverage.add_entry(entry)
        if entry.since_ms is None:
            born_ms = _first_time(entry)
    if born_ms is not None:
        start_ms = max(start_ms, born_ms // HOUR_MS * HOUR_MS)
    hours = coverage.hours(cluster_id, since_ms=start_ms, until_ms=min(end_ms + MARGIN_MS, last_ms))
    return [
        (owner, cluster_id, from_ms(hour.hour_ms), hour.complete, hour.reason) for hour in hours
    ]


def entry_of(plain: Mapping[str, Any]) -> ClusterEntry:
    """A manifest's entry of a cluster, from the JSON in `FileCoverage.entry`."""
    storage = plain["storage"]
    return ClusterEntry(
        **{
            **plain,
            "lanes": tuple(LaneEntry(**lane) for lane in plain["lanes"]),
            "storage": None if storage is None else StorageEntry(**storage),
        }
    )


def _first_time(entry: ClusterEntry) -> int:
    """The earliest time in a cluster's first entry, in milliseconds since 1970."""
    times = [entry.as_of_ms, *(lane.started_at_ms for lane in entry.lanes)]
    if entry.storage is not None:
        times.append(entry.storage.since_ms)
    return min(times)

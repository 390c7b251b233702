"""Which hours of a cluster are complete, from what the files that were taken in cover.

Only the hours that new files say something of are judged anew: what is missing of an hour can only
come with a file that speaks of that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from metering.events.coverage import MARGIN_MS, Coverage
from metering.events.manifests import ClusterCoverage, LaneCoverage, StorageCoverage
from metering.models import FileCoverage
from metering.periods import HOUR_MS, from_ms
from metering.services.absorbing import Touched

# An hour's end needs somebody who speaks of a margin later, and a hole reaches a margin beyond its
# ends.
REACH_MS = 2 * MARGIN_MS
# A file judges no hour that is older: its month was closed, and a lane may not know its beginning.
LOOK_BACK_MS = 40 * 24 * HOUR_MS

STAND = """
INSERT INTO metering_hourstanding AS known (organization_id, cluster_id, hour, complete, reason)
SELECT * FROM unnest(%s::text[], %s::text[], %s::timestamptz[], %s::boolean[], %s::text[])
ON CONFLICT (cluster_id, hour)
DO UPDATE SET complete = EXCLUDED.complete, reason = EXCLUDED.reason,
    organization_id = EXCLUDED.organization_id
WHERE (known.complete, known.reason) IS DISTINCT FROM (EXCLUDED.complete, EXCLUDED.reason)
"""


def judge_hours(touched: Iterable[Touched]) -> int:
    """Judges every hour that new files say something of; gives how many."""
    spans: dict[str, tuple[int, int]] = {}
    for each in touched:
        since, until = spans.get(each.cluster_id, (each.since_ms, each.until_ms))
        spans[each.cluster_id] = (min(since, each.since_ms), max(until, each.until_ms))
    rows: list[tuple[str, str, object, bool, str]] = []
    for cluster_id, (since_ms, until_ms) in sorted(spans.items()):
        rows += _judge(cluster_id, since_ms, until_ms)
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(STAND, [list(column) for column in zip(*rows, strict=True)])
    return len(rows)


def _judge(
    cluster_id: str, since_ms: int, until_ms: int
) -> list[tuple[str, str, object, bool, str]]:
    start_ms = (max(since_ms, until_ms - LOOK_BACK_MS) - REACH_MS) // HOUR_MS * HOUR_MS
    end_ms = max(until_ms, since_ms + 1)
    last_ms = end_ms
    # Entries that speak of this time, and those just before and behind it, which join on to them.
    found = FileCoverage.objects.filter(
        cluster_id=cluster_id, as_of_ms__gte=start_ms - REACH_MS, since_ms__lte=end_ms + HOUR_MS
    )
    coverage, owner, born_ms = Coverage(), "", None
    for plain in found.order_by("as_of_ms").values_list("entry", flat=True):
        entry = entry_of(plain)
        owner = entry.organization_id
        last_ms = max(last_ms, entry.as_of_ms)
        coverage.add_entry(entry)
        if entry.since_ms is None:
            born_ms = _born(entry)
    if born_ms is not None:
        start_ms = max(start_ms, born_ms // HOUR_MS * HOUR_MS)
    hours = coverage.hours(cluster_id, since_ms=start_ms, until_ms=min(end_ms + MARGIN_MS, last_ms))
    return [
        (owner, cluster_id, from_ms(hour.hour_ms), hour.complete, hour.reason) for hour in hours
    ]


def entry_of(plain: Mapping[str, Any]) -> ClusterCoverage:
    """A manifest's entry of a cluster, as `FileCoverage.entry` holds it."""
    storage = plain["storage"]
    return ClusterCoverage(
        **{
            **plain,
            "lanes": tuple(LaneCoverage(**lane) for lane in plain["lanes"]),
            "storage": None if storage is None else StorageCoverage(**storage),
        }
    )


def _born(entry: ClusterCoverage) -> int:
    """When the first entry of a cluster begins to tell, in milliseconds since 1970."""
    times = [entry.as_of_ms, *(lane.started_at_ms for lane in entry.lanes)]
    if entry.storage is not None:
        times.append(entry.storage.since_ms)
    return min(times)

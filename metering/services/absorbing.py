"""Takes one usage file in: what it adds to the minutes, what it covers, how its topics are called.

All of it is sets: a file is a handful of statements, however many rows it has. Each function needs
the transaction, the lock and the scope of `ingest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
from django.db import connection, transaction
from psycopg.types.multirange import Multirange

from console.base.common.clock import now
from console.base.common.uses import principals_used
from metering.events.manifests import ClusterCoverage as Entry
from metering.events.manifests import UsageManifest
from metering.minutes import Additions, Lane, Span, additions, lanes_of, subtract, windows_of
from metering.models import FileCoverage
from metering.periods import HOUR_MS, MINUTE_MS, to_ms

# Of the calendar, with room for the margins of hours.
TIMES_MS = range(to_ms(datetime(2, 1, 1, tzinfo=UTC)), to_ms(datetime(9999, 1, 1, tzinfo=UTC)))
# A window of several minutes is spread over them to the last unit.
ADD_MINUTES = """
INSERT INTO metering_provisionalminute AS known
    (organization_id, cluster_id, topic_id, principal, meter, billed, minute, quantity)
SELECT organization_id, cluster_id, topic_id, principal, meter, billed,
       to_timestamp((start_ms / 1000 + 60 * i)::double precision), sum(share)
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::boolean[],
            %s::bigint[], %s::int[], %s::numeric[])
    AS added (organization_id, cluster_id, topic_id, principal, meter, billed,
              start_ms, minutes, quantity),
    LATERAL generate_series(0, minutes - 1) AS i,
    LATERAL (SELECT div((i + 1) * quantity, minutes) - div(i * quantity, minutes)) AS part (share)
WHERE share > 0 AND to_timestamp((start_ms / 1000 + 60 * i)::double precision) >= %s
GROUP BY 1, 2, 3, 4, 5, 6, 7
ON CONFLICT (cluster_id, minute, meter, topic_id, principal, billed)
DO UPDATE SET quantity = known.quantity + EXCLUDED.quantity
"""
COVER_LANES = """
INSERT INTO metering_lanecoverage AS known
    (organization_id, cluster_id, incarnation, sequences, changed_at)
SELECT organization_id, cluster_id, incarnation, int8multirange(int8range(low, high)), %s
FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[])
    AS added (organization_id, cluster_id, incarnation, low, high)
ON CONFLICT (cluster_id, incarnation)
DO UPDATE SET sequences = known.sequences + EXCLUDED.sequences, changed_at = EXCLUDED.changed_at
"""
COVER_CLUSTERS = """
INSERT INTO metering_clustercoverage AS known
    (organization_id, cluster_id, storage_ms, as_of_ms, closed_at_ms)
SELECT organization_id, cluster_id,
       CASE WHEN low < high THEN int8multirange(int8range(low, high)) ELSE '{}' END,
       as_of_ms, closed_at_ms
FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
    AS added (organization_id, cluster_id, low, high, as_of_ms, closed_at_ms)
ON CONFLICT (cluster_id)
DO UPDATE SET organization_id = EXCLUDED.organization_id,
    storage_ms = known.storage_ms + EXCLUDED.storage_ms,
    as_of_ms = greatest(known.as_of_ms, EXCLUDED.as_of_ms),
    closed_at_ms = coalesce(EXCLUDED.closed_at_ms, known.closed_at_ms)
"""
NAME_TOPICS = """
INSERT INTO metering_topicname AS known (organization_id, cluster_id, topic_id, name)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
ON CONFLICT (cluster_id, topic_id) DO UPDATE SET name = EXCLUDED.name
WHERE known.name <> EXCLUDED.name
"""
COVERED_LANES = """
SELECT cluster_id, incarnation, sequences FROM metering_lanecoverage
JOIN unnest(%s::text[], %s::bigint[]) AS wanted (cluster_id, incarnation)
USING (cluster_id, incarnation)
"""
COVERED_WINDOWS = """
SELECT cluster_id, storage_ms FROM metering_clustercoverage WHERE cluster_id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Touched:
    """What a file says something new of: a cluster's time in [since, until], in milliseconds."""

    cluster_id: str
    since_ms: int
    until_ms: int


def absorb(manifest: UsageManifest, rows: pa.Table, *, keep_from: datetime) -> list[Touched]:
    """Adds a file's rows and what it covers; rows of minutes before `keep_from` are left out.

    Raises `ValueError` for rows and times that no usage file has, and `DataError` for texts that
    PostgreSQL does not take.
    """
    if len({cluster.cluster_id for cluster in manifest.clusters}) < len(manifest.clusters):
        message = "a manifest speaks of a cluster twice"
        raise ValueError(message)
    _check_times(manifest)
    fresh = additions(
        rows,
        lanes=_fresh_lanes(lanes_of(manifest)),
        windows=_fresh_windows(windows_of(manifest)),
    )
    _add_minutes(fresh, keep_from)
    _tell_uses(fresh)
    _cover_lanes(manifest)
    _cover_clusters(manifest)
    _name_topics(manifest)
    return _remember(manifest)


def _check_times(manifest: UsageManifest) -> None:
    """Refuses times that no calendar has: the hours of all files of the batch are judged together,
    and could not be.
    """
    for entry in manifest.clusters:
        times = [entry.as_of_ms, entry.since_ms or 0]
        for lane in entry.lanes:
            times += [lane.started_at_ms, lane.since_ms, lane.until_ms]
        if entry.storage is not None:
            times += [entry.storage.since_ms, entry.storage.until_ms]
        if not all(moment in TIMES_MS for moment in times):
            message = f"a manifest speaks of a time that no calendar has, of {entry.cluster_id}"
            raise ValueError(message)


def _fresh_lanes(brought: dict[Lane, Span]) -> dict[Lane, list[Span]]:
    if not brought:
        return {}
    clusters, incarnations = zip(*brought, strict=True)
    found = _query(COVERED_LANES, [list(clusters), list(incarnations)])
    covered = {(cluster, incarnation): _spans(ranges) for cluster, incarnation, ranges in found}
    return {lane: subtract(span, covered.get(lane, ())) for lane, span in brought.items()}


def _fresh_windows(brought: dict[str, Span]) -> dict[str, list[Span]]:
    if not brought:
        return {}
    found = _query(COVERED_WINDOWS, [list(brought)])
    covered = {cluster: _spans(ranges) for cluster, ranges in found}
    return {cluster: subtract(span, covered.get(cluster, ())) for cluster, span in brought.items()}


def _add_minutes(added: Additions, keep_from: datetime) -> None:
    if added:
        columns = [
            *(added.organization_id, added.cluster_id, added.topic_id, added.principal),
            *(added.meter, added.billed, added.window_start_ms, added.minutes, added.quantity),
        ]
        _execute(ADD_MINUTES, [*columns, keep_from])


def _tell_uses(added: Additions) -> None:
    """Tells of each principal when it last moved records, once the transaction has committed."""
    last: dict[tuple[str, str], int] = {}
    columns = (added.cluster_id, added.principal, added.window_start_ms, added.minutes)
    for cluster_id, principal, start_ms, minutes in zip(*columns, strict=True):
        if principal:
            at_ms = start_ms + (minutes - 1) * MINUTE_MS
            last[cluster_id, principal] = max(at_ms, last.get((cluster_id, principal), at_ms))
    if last:
        used = {key: datetime.fromtimestamp(at / 1000, UTC) for key, at in last.items()}
        tell = partial(principals_used.send_robust, sender=None, used=used)
        transaction.on_commit(tell, robust=True)


def _cover_lanes(manifest: UsageManifest) -> None:
    owners = {each.cluster_id: each.organization_id for each in manifest.clusters}
    rows = [
        (owners[cluster], cluster, incarnation, low, high)
        for (cluster, incarnation), (low, high) in lanes_of(manifest).items()
    ]
    if rows:
        _execute(COVER_LANES, [now(), *_transposed(rows)])


def _cover_clusters(manifest: UsageManifest) -> None:
    windows = windows_of(manifest)
    rows = [
        (
            *(
                cluster.organization_id,
                cluster.cluster_id,
                *windows.get(cluster.cluster_id, (0, 0)),
            ),
            *(cluster.as_of_ms, cluster.as_of_ms if cluster.closed else None),
        )
        for cluster in manifest.clusters
    ]
    if rows:
        _execute(COVER_CLUSTERS, _transposed(rows))


def _name_topics(manifest: UsageManifest) -> None:
    owners = {each.cluster_id: each.organization_id for each in manifest.clusters}
    rows = []
    for key, name in manifest.topics.items():
        cluster, _, topic_id = key.partition("/")
        if cluster in owners:
            rows.append((owners[cluster], cluster, topic_id, name))
    if rows:
        _execute(NAME_TOPICS, _transposed(rows))


def _remember(manifest: UsageManifest) -> list[Touched]:
    spans = [(entry, *span_of(entry)) for entry in manifest.clusters]
    FileCoverage.objects.bulk_create(
        FileCoverage(
            file_id=manifest.key,
            cluster_id=entry.cluster_id,
            organization_id=entry.organization_id,
            as_of_ms=entry.as_of_ms,
            since_ms=since_ms,
            until_ms=until_ms,
            entry=asdict(entry),
        )
        for entry, since_ms, until_ms in spans
    )
    return [Touched(entry.cluster_id, since_ms, entry.as_of_ms) for entry, since_ms, _ in spans]


def span_of(entry: Entry) -> tuple[int, int]:
    """From when to when a manifest's entry says something, in milliseconds since 1970."""
    since, until = [entry.as_of_ms], [entry.as_of_ms]
    if entry.since_ms is not None:
        since.append(entry.since_ms)
    for lane in entry.lanes:
        # A lane that nobody read yet may be covered since before it was.
        since.append(max(lane.since_ms, lane.started_at_ms - HOUR_MS))
        until.append(lane.until_ms)
    if entry.storage is not None:
        since.append(entry.storage.since_ms)
        until.append(entry.storage.until_ms)
    return min(since), max(until)


def _spans(ranges: Multirange[int]) -> list[Span]:
    spans = ((each.lower, each.upper) for each in ranges)
    return [(low, high) for low, high in spans if low is not None and high is not None]


def _transposed(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _query(statement: str, parameters: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[Any] = cursor.fetchall()
    return found


def _execute(statement: str, parameters: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)

"""Takes one usage file in: adds to minutes and totals, records what it covers, names its topics.

It takes a few statements over sets, however many rows the file has. Each function needs the
transaction, the lock and the scope of `ingest`.
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
from metering.events.manifests import ClusterEntry, UsageManifest
from metering.minutes import Additions, Lane, Span, additions, lanes_of, subtract_spans, windows_of
from metering.models import FileCoverage
from metering.periods import HOUR_MS, MINUTE_MS, to_ms
from metering.services.running import add_minutes

# Times that `datetime` can hold, with room for the margins that completeness adds.
TIMES_MS = range(to_ms(datetime(2, 1, 1, tzinfo=UTC)), to_ms(datetime(9999, 1, 1, tzinfo=UTC)))
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
    """The time [since, until] in ms of a cluster about which a file says something new."""

    cluster_id: str
    since_ms: int
    until_ms: int


def absorb_file(manifest: UsageManifest, rows: pa.Table, *, keep_from: datetime) -> list[Touched]:
    """Adds a file's usage to minutes and totals, and records its coverage and its topics' names.

    It leaves out blocks and windows that an earlier file covered, and minutes before `keep_from`.
    Returns, for each cluster of the manifest, the time in ms since 1970 whose hours must be judged
    for completeness. After the commit it sends `principals_used`. Raises `ValueError` for a cluster
    with two entries, an impossible time, a quantity below zero and a window of no whole minutes,
    and `DataError` for texts and numbers that PostgreSQL does not store.
    """
    if len({cluster.cluster_id for cluster in manifest.clusters}) < len(manifest.clusters):
        message = "its manifest has two entries of one cluster"
        raise ValueError(message)
    _check_times(manifest)
    # What is covered already must be read before this file's coverage is added below: afterwards
    # nothing of the file would be new.
    fresh = additions(
        rows,
        lanes=_fresh_lanes(lanes_of(manifest)),
        windows=_fresh_windows(windows_of(manifest)),
    )
    if fresh:
        add_minutes(asdict(fresh), keep_from=keep_from)
    _report_uses(fresh)
    _cover_lanes(manifest)
    _cover_clusters(manifest)
    _name_topics(manifest)
    return _record_coverage(manifest)


def _check_times(manifest: UsageManifest) -> None:
    """Raises `ValueError` for times that `datetime` cannot hold.

    The hours of all files of a batch are judged together, so one such time would fail the batch.
    """
    for entry in manifest.clusters:
        times = [entry.as_of_ms, entry.since_ms or 0]
        for lane in entry.lanes:
            times += [lane.started_at_ms, lane.since_ms, lane.until_ms]
        if entry.storage is not None:
            times += [entry.storage.since_ms, entry.storage.until_ms]
        if not all(moment in TIMES_MS for moment in times):
            message = f"its manifest has an impossible time, in the entry of {entry.cluster_id}"
            raise ValueError(message)


def _fresh_lanes(brought: dict[Lane, Span]) -> dict[Lane, list[Span]]:
    if not brought:
        return {}
    clusters, incarnations = zip(*brought, strict=True)
    rows = _query_rows(COVERED_LANES, [list(clusters), list(incarnations)])
    covered = {(cluster, incarnation): _spans_of(ranges) for cluster, incarnation, ranges in rows}
    return {lane: subtract_spans(span, covered.get(lane, ())) for lane, span in brought.items()}


def _fresh_windows(brought: dict[str, Span]) -> dict[str, list[Span]]:
    if not brought:
        return {}
    rows = _query_rows(COVERED_WINDOWS, [list(brought)])
    covered = {cluster: _spans_of(ranges) for cluster, ranges in rows}
    return {
        cluster: subtract_spans(span, covered.get(cluster, ())) for cluster, span in brought.items()
    }


def _report_uses(added: Additions) -> None:
    """Sends `principals_used` with each principal's last use, after the transaction's commit."""
    last: dict[tuple[str, str], int] = {}
    columns = (added.cluster_id, added.principal, added.window_start_ms, added.minutes)
    for cluster_id, principal, start_ms, minutes in zip(*columns, strict=True):
        if principal:
            at_ms = start_ms + (minutes - 1) * MINUTE_MS
            last[cluster_id, principal] = max(at_ms, last.get((cluster_id, principal), at_ms))
    if last:
        used = {key: datetime.fromtimestamp(at / 1000, UTC) for key, at in last.items()}
        send = partial(principals_used.send_robust, sender=None, used=used)
        transaction.on_commit(send, robust=True)


def _cover_lanes(manifest: UsageManifest) -> None:
    owners = {cluster.cluster_id: cluster.organization_id for cluster in manifest.clusters}
    rows = [
        (owners[cluster], cluster, incarnation, low, high)
        for (cluster, incarnation), (low, high) in lanes_of(manifest).items()
    ]
    if rows:
        _execute_statement(COVER_LANES, [now(), *_transpose(rows)])


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
        _execute_statement(COVER_CLUSTERS, _transpose(rows))


def _name_topics(manifest: UsageManifest) -> None:
    owners = {entry.cluster_id: entry.organization_id for entry in manifest.clusters}
    rows = []
    for key, name in manifest.topics.items():
        cluster, _, topic_id = key.partition("/")
        if cluster in owners:
            rows.append((owners[cluster], cluster, topic_id, name))
    if rows:
        _execute_statement(NAME_TOPICS, _transpose(rows))


def _record_coverage(manifest: UsageManifest) -> list[Touched]:
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


def span_of(entry: ClusterEntry) -> tuple[int, int]:
    """The time [since, until] that a manifest's entry covers, in milliseconds since 1970."""
    since, until = [entry.as_of_ms], [entry.as_of_ms]
    if entry.since_ms is not None:
        since.append(entry.since_ms)
    for lane in entry.lanes:
        # The first entry of a lane may cover it from long before it started. An hour before its
        # start is early enough for every margin.
        since.append(max(lane.since_ms, lane.started_at_ms - HOUR_MS))
        until.append(lane.until_ms)
    if entry.storage is not None:
        since.append(entry.storage.since_ms)
        until.append(entry.storage.until_ms)
    return min(since), max(until)


def _spans_of(ranges: Multirange[int]) -> list[Span]:
    spans = ((range_.lower, range_.upper) for range_ in ranges)
    return [(low, high) for low, high in spans if low is not None and high is not None]


def _transpose(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _query_rows(statement: str, parameters: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[Any] = cursor.fetchall()
    return rows


def _execute_statement(statement: str, parameters: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)

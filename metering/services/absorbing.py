"""Takes usage files in: adds to minutes and totals, records what they cover, names their topics.

Some files together take a few statements over sets, however many there are and however many rows
they have. Each function needs the transaction, the lock and the scope of `ingest`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.db import connection, transaction
from psycopg.types.multirange import Multirange

from console.base.common.clock import now
from console.base.common.uses import principals_used
from metering.choices import FileState
from metering.events.manifests import ClusterEntry, ReplacedFile, UsageManifest
from metering.minutes import (
    Additions,
    Lane,
    LaneFileKey,
    Span,
    additions,
    fresh_files,
    lanes_of,
    subtract_spans,
    windows_of,
)
from metering.models import FileCoverage, UsageFile
from metering.periods import HOUR_MS, MINUTE_MS, from_ms, to_ms
from metering.services.running import add_minutes

# Times that `datetime` can hold, with room for the margins that completeness adds.
TIMES_MS = range(to_ms(datetime(2, 1, 1, tzinfo=UTC)), to_ms(datetime(9999, 1, 1, tzinfo=UTC)))
# Rows are written in the order of their keys, so that two sessions never wait for each other.
COVER_LANES = """
INSERT INTO metering_lanecoverage AS known
    (organization_id, cluster_id, incarnation, sequences, changed_at)
SELECT organization_id, cluster_id, incarnation, sequences, %s
FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::text[]::int8multirange[])
    AS added (organization_id, cluster_id, incarnation, sequences)
ORDER BY cluster_id, incarnation
ON CONFLICT (cluster_id, incarnation)
DO UPDATE SET sequences = known.sequences + EXCLUDED.sequences, changed_at = EXCLUDED.changed_at
"""
COVER_CLUSTERS = """
INSERT INTO metering_clustercoverage AS known
    (organization_id, cluster_id, storage_ms, as_of_ms, closed_at_ms)
SELECT organization_id, cluster_id, storage_ms, as_of_ms, closed_at_ms
FROM unnest(%s::text[], %s::text[], %s::text[]::int8multirange[], %s::bigint[], %s::bigint[])
    AS added (organization_id, cluster_id, storage_ms, as_of_ms, closed_at_ms)
ORDER BY cluster_id
ON CONFLICT (cluster_id)
DO UPDATE SET organization_id = EXCLUDED.organization_id,
    storage_ms = known.storage_ms + EXCLUDED.storage_ms,
    as_of_ms = greatest(known.as_of_ms, EXCLUDED.as_of_ms),
    closed_at_ms = coalesce(EXCLUDED.closed_at_ms, known.closed_at_ms)
"""
# Nearly all of them are known: those are not written, not even locked.
NAME_TOPICS = """
INSERT INTO metering_topicname AS known (organization_id, cluster_id, topic_id, name)
SELECT added.* FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
    AS added (organization_id, cluster_id, topic_id, name)
    LEFT JOIN metering_topicname AS old USING (cluster_id, topic_id)
WHERE old.name IS DISTINCT FROM added.name
ORDER BY cluster_id, topic_id
ON CONFLICT (cluster_id, topic_id) DO UPDATE SET name = EXCLUDED.name
"""
COVERED_LANES = """
SELECT cluster_id, incarnation, sequences FROM metering_lanecoverage
JOIN unnest(%s::text[], %s::bigint[]) AS wanted (cluster_id, incarnation)
USING (cluster_id, incarnation)
"""
COVERED_WINDOWS = """
SELECT cluster_id, storage_ms FROM metering_clustercoverage WHERE cluster_id = ANY(%s)
"""


# A file's manifest and rows.
File = tuple[UsageManifest, pa.Table]


@dataclass(frozen=True, slots=True)
class Touched:
    """The time [since, until] in ms of a cluster about which a file says something new."""

    cluster_id: str
    since_ms: int
    until_ms: int


@dataclass(slots=True)
class Absorbed:
    """What became of some files: what they say anew, and why some were left out, by their keys."""

    touched: list[Touched] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Covered:
    """Which blocks and windows are in the minutes already, in any order."""

    lanes: dict[Lane, list[Span]]
    windows: dict[str, list[Span]]

    def fresh_lanes(self, brought: Mapping[Lane, Span]) -> dict[Lane, list[Span]]:
        """The blocks that are new."""
        return {lane: subtract_spans(s, self.lanes.get(lane, ())) for lane, s in brought.items()}

    def fresh_windows(self, brought: Mapping[str, Span]) -> dict[str, list[Span]]:
        """The windows that are new."""
        return {
            cluster: subtract_spans(span, self.windows.get(cluster, ()))
            for cluster, span in brought.items()
        }

    def add(self, lanes: Mapping[Lane, Span], windows: Mapping[str, Span]) -> None:
        """Notes what a file brought."""
        for lane, span in lanes.items():
            self.lanes.setdefault(lane, []).append(span)
        for cluster, span in windows.items():
            self.windows.setdefault(cluster, []).append(span)


def absorb_files(files: Iterable[File], *, keep_from: datetime) -> Absorbed:
    """Adds files' usage to minutes and totals, and records their coverage and topics' names.

    It is as if the files came one after the other, in this order: each leaves out blocks and
    windows that an earlier one covered, and minutes before `keep_from`. The hours of what they
    touched must be judged for completeness. After the commit it sends `principals_used`.

    A file is refused, and adds nothing, where it has a cluster with two entries, an impossible
    time, a quantity below zero or a window of no whole minutes. Raises `DataError` or `ValueError`
    for texts and numbers that PostgreSQL does not store, in any of them; nothing is known of the
    others then. Their rows in `UsageFile` must be there.
    """
    absorbed, files = Absorbed(), list(files)
    # What is covered already must be read before these files' coverage is added below: afterwards
    # nothing of them would be new.
    covered = _read_covered([manifest for manifest, _ in files])
    taken: list[UsageManifest] = []
    added: list[Additions] = []
    waiting = list(_groups(files))
    while waiting:
        group = waiting.pop(0)
        try:
            added.append(_fresh_additions(group, covered))
        except ValueError as error:
            if len(group) == 1:
                absorbed.refused[group[0][0].key] = str(error)
            else:
                # One of them is refused: each is looked at by itself.
                waiting[:0] = [[file] for file in group]
            continue
        for manifest, _ in group:
            covered.add(lanes_of(manifest), windows_of(manifest))
            taken.append(manifest)
    columns = _joined(added)
    if columns["quantity"]:
        add_minutes(columns, keep_from=keep_from)
    _report_uses(columns)
    _cover_lanes(taken)
    _cover_clusters(taken)
    _name_topics(taken)
    absorbed.touched = _record_coverage(taken)
    return absorbed


def absorb_replacements(manifests: Sequence[UsageManifest]) -> list[Touched]:
    """Has replacements count in the place of the files that they name, whose rows they have.

    Their own rows in `UsageFile` must be there. Of the files that they replace those that are not
    known, as in a database that was restored, become known. Nothing is added to minutes: what is
    joined is older than any minute that is kept. Raises `ValueError` for an impossible time.
    """
    for manifest in manifests:
        _check_times(manifest)
        UsageFile.objects.bulk_create(
            [_replaced_row(manifest, file) for file in manifest.replaces], ignore_conflicts=True
        )
        keys = [file.key for file in manifest.replaces]
        UsageFile.objects.filter(pk__in=keys).update(replaced_by=manifest.key)
        FileCoverage.objects.filter(file__in=keys).delete()
    _cover_clusters(manifests)
    _name_topics(manifests)
    return _record_coverage(manifests)


def _replaced_row(manifest: UsageManifest, file: ReplacedFile) -> UsageFile:
    return UsageFile(
        key=file.key,
        cell=manifest.cell,
        day=from_ms(file.emitted_at_ms).date(),
        size_bytes=file.size_bytes,
        sha256=file.sha256,
        rows=file.rows,
        window_start_ms=file.window_start_ms if file.rows else None,
        window_end_ms=file.window_end_ms if file.rows else None,
        emitted_at_ms=file.emitted_at_ms,
        state=FileState.INGESTED,
    )


def _groups(files: Iterable[File]) -> Iterator[list[File]]:
    """Files that follow one another and have no cluster in common, such as those that agents wrote
    in one minute. What they add depends on none of the others, so it is found at once: eight small
    files take little more than one large one."""
    group: list[File] = []
    clusters: set[str] = set()
    for file in files:
        manifest, rows = file
        own = {entry.cluster_id for entry in manifest.clusters}
        # Rows of a cluster that the manifest does not name must not count by another's.
        is_whole = own.issuperset(pc.unique(rows.column("cluster_id")).to_pylist())
        if group and (not is_whole or clusters & own):
            yield group
            group, clusters = [], set()
        group.append(file)
        clusters |= own
        if not is_whole:
            yield group
            group, clusters = [], set()
    if group:
        yield group


def _fresh_additions(group: Sequence[File], covered: _Covered) -> Additions:
    """What files without a common cluster add. Raises `ValueError` where one is refused."""
    lanes: dict[Lane, list[Span]] = {}
    windows: dict[str, list[Span]] = {}
    summed: list[LaneFileKey] = []
    for manifest, _ in group:
        _check_manifest(manifest)
        new_lanes = covered.fresh_lanes(lanes_of(manifest))
        lanes |= new_lanes
        windows |= covered.fresh_windows(windows_of(manifest))
        summed += fresh_files(manifest, new_lanes)
    rows = pa.concat_tables([rows for _, rows in group])
    return additions(rows, lanes=lanes, windows=windows, files=summed)


def _joined(added: Iterable[Additions]) -> dict[str, list[Any]]:
    """The columns of all additions, one after the other. The same row may come several times."""
    columns: dict[str, list[Any]] = {column.name: [] for column in fields(Additions)}
    for one in added:
        for name, column in columns.items():
            column.extend(getattr(one, name))
    return columns


def _check_manifest(manifest: UsageManifest) -> None:
    """Raises `ValueError` for two entries of a cluster, and for an impossible time."""
    if len({cluster.cluster_id for cluster in manifest.clusters}) < len(manifest.clusters):
        message = "its manifest has two entries of one cluster"
        raise ValueError(message)
    _check_times(manifest)


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


def _read_covered(manifests: Iterable[UsageManifest]) -> _Covered:
    lanes = sorted({lane for manifest in manifests for lane in lanes_of(manifest)})
    clusters = sorted({cluster for manifest in manifests for cluster in windows_of(manifest)})
    covered = _Covered({}, {})
    if lanes:
        columns = _transpose(lanes)
        for cluster, incarnation, ranges in _query_rows(COVERED_LANES, columns):
            covered.lanes[cluster, incarnation] = _spans_of(ranges)
    if clusters:
        for cluster, ranges in _query_rows(COVERED_WINDOWS, [clusters]):
            covered.windows[cluster] = _spans_of(ranges)
    return covered


def _report_uses(added: Mapping[str, Sequence[Any]]) -> None:
    """Sends `principals_used` with each principal's last use, after the transaction's commit."""
    last: dict[tuple[str, str], int] = {}
    columns = (added[name] for name in ("cluster_id", "principal", "window_start_ms", "minutes"))
    for cluster_id, principal, start_ms, minutes in zip(*columns, strict=True):
        if principal:
            at_ms = start_ms + (minutes - 1) * MINUTE_MS
            last[cluster_id, principal] = max(at_ms, last.get((cluster_id, principal), at_ms))
    if last:
        used = {key: datetime.fromtimestamp(at / 1000, UTC) for key, at in last.items()}
        send = partial(principals_used.send_robust, sender=None, used=used)
        transaction.on_commit(send, robust=True)


def _cover_lanes(manifests: Iterable[UsageManifest]) -> None:
    owners: dict[Lane, str] = {}
    spans: dict[Lane, list[Span]] = {}
    for manifest in manifests:
        of_cluster = {entry.cluster_id: entry.organization_id for entry in manifest.clusters}
        for lane, span in lanes_of(manifest).items():
            owners.setdefault(lane, of_cluster[lane[0]])
            spans.setdefault(lane, []).append(span)
    rows = [(owners[lane], *lane, _multirange(spans[lane])) for lane in spans]
    if rows:
        _execute_statement(COVER_LANES, [now(), *_transpose(rows)])


def _cover_clusters(manifests: Iterable[UsageManifest]) -> None:
    # The last entry of a cluster, the latest time in any, and the last end.
    entries: dict[str, ClusterEntry] = {}
    as_of: dict[str, int] = {}
    closed_at: dict[str, int] = {}
    spans: dict[str, list[Span]] = {}
    for manifest in manifests:
        for entry in manifest.clusters:
            cluster_id = entry.cluster_id
            entries[cluster_id] = entry
            as_of[cluster_id] = max(entry.as_of_ms, as_of.get(cluster_id, entry.as_of_ms))
            if entry.closed:
                closed_at[cluster_id] = entry.as_of_ms
        for cluster_id, span in windows_of(manifest).items():
            spans.setdefault(cluster_id, []).append(span)
    rows = [
        (
            *(entry.organization_id, cluster_id, _multirange(spans.get(cluster_id, ()))),
            *(as_of[cluster_id], closed_at.get(cluster_id)),
        )
        for cluster_id, entry in entries.items()
    ]
    if rows:
        _execute_statement(COVER_CLUSTERS, _transpose(rows))


def _name_topics(manifests: Iterable[UsageManifest]) -> None:
    topics: dict[tuple[str, str], tuple[str, str]] = {}
    for manifest in manifests:
        owners = {entry.cluster_id: entry.organization_id for entry in manifest.clusters}
        for key, name in manifest.topics.items():
            cluster, _, topic_id = key.partition("/")
            if cluster in owners:
                topics[cluster, topic_id] = owners[cluster], name
    rows = [(owner, *topic, name) for topic, (owner, name) in topics.items()]
    if rows:
        _execute_statement(NAME_TOPICS, _transpose(rows))


def _record_coverage(manifests: Iterable[UsageManifest]) -> list[Touched]:
    rows = [
        _coverage_of(manifest.key, list(entries))
        for manifest in manifests
        # Entries of one cluster stand together in a replacement, and elsewhere there is one.
        for _, entries in groupby(manifest.clusters, attrgetter("cluster_id"))
    ]
    FileCoverage.objects.bulk_create(rows)
    return [Touched(row.cluster_id, row.since_ms, row.as_of_ms) for row in rows]


def _coverage_of(key: str, entries: Sequence[ClusterEntry]) -> FileCoverage:
    spans = [span_of(entry) for entry in entries]
    plain = [asdict(entry) for entry in entries]
    return FileCoverage(
        file_id=key,
        cluster_id=entries[0].cluster_id,
        organization_id=entries[-1].organization_id,
        as_of_ms=max(entry.as_of_ms for entry in entries),
        since_ms=min(since for since, _ in spans),
        until_ms=max(until for _, until in spans),
        entry=plain[0] if len(plain) == 1 else plain,
    )


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


def _multirange(spans: Iterable[Span]) -> str:
    """Spans as PostgreSQL reads a multirange, in any order."""
    return "{" + ",".join(f"[{low},{high})" for low, high in spans) + "}"


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

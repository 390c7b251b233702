"""Takes files of samples in: the newest sample of each cluster, and its series minute by minute.

It pulls, as the ingest of usage does: a keeper only writes files. Files are read while no
transaction is open; what a file adds and the record that it was added are one transaction. A sample
of an earlier keeper, or an earlier one of the same keeper, never replaces a newer one.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import orjson
from django.db import DataError, connection, transaction

from brokers.objects import Objects, open_objects
from console.base.common import locks
from console.base.common.clock import now, unix_ms
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from provisioning.cell.sample_files import (
    FILE_BYTES_MAX,
    HOUR_MS,
    SampleFileContent,
    SampleFileError,
    decode_file,
    hour_prefix,
    parse_key,
)
from provisioning.cell.samples import TOPICS
from provisioning.choices import Intent, SampleFileState
from provisioning.clusters.services.sample_series import Series, series_of
from provisioning.models import Cluster, ClusterSample, SampleFile

logger = logging.getLogger(__name__)

MINUTE_MS = 60_000
# Files are kept for this long, and known for as long.
KEPT = timedelta(hours=24)
# A file is looked for this long after the newest that is known: it may have been written late, or
# by a keeper whose clock is behind.
LATE = timedelta(minutes=10)
# A keeper's clock may be ahead by this much; samples of a later time are refused.
AHEAD = timedelta(minutes=5)
FILES_A_TRANSACTION = 16
# A pass ends after this time, so that the worker is free; the next one goes on.
PASS_S = 20.0


@dataclass(slots=True)
class SamplePass:
    """What one pass did: files, samples and rows of minutes taken in, damaged files and lines."""

    files: int = 0
    samples: int = 0
    minutes: int = 0
    damaged: int = 0


def samples_store() -> Objects:
    """The objects of the cell, to which its keeper writes the files."""
    return open_objects(config().cell.bucket)


def ingest_samples(*, objects: Objects | None = None, limit_s: float = PASS_S) -> SamplePass:
    """Takes in the files that are not known yet, in the order in which they were written.

    Where another pass runs, this one ends early. Raises `OSError` where the store cannot be
    reached.
    """
    objects, began, done = objects or samples_store(), time.monotonic(), SamplePass()
    keys = find_files(objects, at=now())
    for start in range(0, len(keys), FILES_A_TRANSACTION):
        if time.monotonic() - began > limit_s:
            break
        read = [_read_file(objects, key) for key in keys[start : start + FILES_A_TRANSACTION]]
        if not _take_in(read, done):
            break
    if done.files or done.damaged:
        logger.info(
            "samples.ingested",
            extra={
                "files": done.files,
                "samples": done.samples,
                "minutes": done.minutes,
                "damaged": done.damaged,
            },
        )
    return done


def find_files(objects: Objects, *, at: datetime) -> list[str]:
    """The keys of files that are not known yet, in order. Raises `OSError`.

    It lists the hours since the newest known file, and without one those of the last day.
    """
    oldest_ms, until_ms = unix_ms(at - KEPT), unix_ms(at + AHEAD)
    newest = SampleFile.objects.order_by("-emitted_at_ms").values_list("emitted_at_ms", flat=True)
    since_ms = max(newest.first() or 0, oldest_ms + unix_ms_of(LATE)) - unix_ms_of(LATE)
    since_ms = min(since_ms, until_ms)
    first_ms = since_ms - since_ms % HOUR_MS
    known = set(SampleFile.objects.filter(emitted_at_ms__gte=first_ms).values_list("pk", flat=True))
    keys = []
    for hour_ms in range(first_ms, until_ms + 1, HOUR_MS):
        for key in objects.list(hour_prefix(hour_ms)):
            parsed = parse_key(key)
            if parsed is not None and oldest_ms <= parsed.emitted_at_ms <= until_ms:
                keys.append(key)
    return [key for key in keys if key not in known]


def unix_ms_of(duration: timedelta) -> int:
    """A duration in whole milliseconds."""
    return duration // timedelta(milliseconds=1)


@dataclass(slots=True)
class _ReadFile:
    """A file with its content; None, and why, where it is damaged."""

    key: str
    file: SampleFileContent | None
    error: str = ""


def _read_file(objects: Objects, key: str) -> _ReadFile:
    try:
        return _ReadFile(key, decode_file(objects.read(key, FILE_BYTES_MAX)))
    except FileNotFoundError:
        return _ReadFile(key, None, "it is gone")
    except SampleFileError as error:
        return _ReadFile(key, None, str(error))


def _take_in(read: Sequence[_ReadFile], done: SamplePass) -> bool:
    """Takes files in, in one transaction. Returns False where another pass holds the lock."""
    with system_scope():
        if not locks.try_lock("sample_ingest", config().cell.id):
            return False
        # Read under the lock: another pass may have taken files in since the list was made.
        known = set(
            SampleFile.objects.filter(pk__in=[entry.key for entry in read]).values_list(
                "pk", flat=True
            )
        )
        new = [entry for entry in read if entry.key not in known]
        newest = _Newest.of(entry.file for entry in new if entry.file is not None)
        rows = []
        for entry in new:
            parsed = parse_key(entry.key)
            if parsed is None:
                continue
            row = SampleFile(
                key=entry.key, emitted_at_ms=parsed.emitted_at_ms, term=parsed.term, error=""
            )
            if entry.file is None or entry.file.term != parsed.term:
                row.state = SampleFileState.DAMAGED.value
                row.error = entry.error or "it is of another keeper than its name says"
                logger.warning("samples.damaged", extra={"file": entry.key, "reason": row.error})
                done.damaged += 1
            else:
                row.state = SampleFileState.INGESTED.value
                row.samples = newest.take(entry.file)
                row.damaged = entry.file.damaged
                done.damaged += entry.file.damaged
                done.files += 1
                done.samples += row.samples
            rows.append(row)
        done.damaged += newest.write()
        done.minutes += newest.written_minutes
        SampleFile.objects.bulk_create(rows)
    return True


@dataclass(slots=True)
class _Newest:
    """The newest samples of the clusters that some files name, and the rows of minutes to add."""

    rows: dict[str, ClusterSample]
    owners: Mapping[str, str]
    latest_ms: int
    days: tuple[date, date]
    # Clusters that have a new content, and those of which only times changed.
    changed: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    minutes: dict[tuple[str, int], Series] = field(default_factory=dict)
    written_minutes: int = 0

    @classmethod
    def of(cls, files: Iterable[SampleFileContent]) -> _Newest:
        """What is stored of the clusters that the files name, those that exist."""
        names: set[str] = set()
        for file in files:
            names |= {sample.cluster_id for sample in file.samples} | file.same.keys()
        clusters = Cluster.objects.filter(pk__in=_possible(names)).exclude(intent=Intent.PURGED)
        owners = dict(clusters.values_list("pk", "organization_id"))
        today = now().astimezone(UTC).date()
        return cls(
            # Contents are large, and only those of clusters that did not change are read.
            rows=ClusterSample.objects.defer("content").in_bulk(list(owners)),
            owners=owners,
            latest_ms=unix_ms(now() + AHEAD),
            # Tables of series have parts for these days.
            days=(today - timedelta(days=1), today + timedelta(days=1)),
        )

    def take(self, file: SampleFileContent) -> int:
        """Takes a file; returns how many of its samples are newer than what was known."""
        count = 0
        for sample in file.samples:
            row = self._row_to_change(sample.cluster_id, file.term, sample.taken_at_ms)
            if row is None:
                continue
            row.term, row.taken_at_ms = file.term, sample.taken_at_ms
            row.content = orjson.dumps(sample.content).decode()
            self.rows[row.pk] = row
            self.changed.add(row.pk)
            self._add_minute(row, sample.content)
            count += 1
        same = []
        for cluster_id, taken_at_ms in file.same.items():
            row = self._row_to_change(cluster_id, file.term, taken_at_ms)
            # Where the sample that it equals was lost, the one that is stored is of another term.
            if row is not None and row.term == file.term:
                row.taken_at_ms = taken_at_ms
                same.append(row)
        self.seen |= {row.pk for row in same}
        self._add_same_minutes([row for row in same if _is_minute_due(row)])
        return count

    def write(self) -> int:
        """Writes all rows; returns how many samples PostgreSQL refused."""
        changed = [self.rows[pk] for pk in sorted(self.changed)]
        refused = sum(
            _write_contents(changed[start : start + 100]) for start in range(0, len(changed), 100)
        )
        seen = [self.rows[pk] for pk in sorted(self.seen - self.changed)]
        if seen:
            _execute(NOTE_SEEN, [[getattr(row, name) for row in seen] for name in SEEN])
        self.written_minutes = self._write_minutes()
        return refused

    def _row_to_change(self, cluster_id: str, term: int, taken_at_ms: int) -> ClusterSample | None:
        """The row of a cluster; None where it is unknown, or has a newer sample."""
        owner = self.owners.get(cluster_id)
        if owner is None or taken_at_ms > self.latest_ms:
            return None
        row = self.rows.get(cluster_id)
        if row is None:
            return ClusterSample(cluster_id=cluster_id, organization_id=owner, term=0)
        return row if (term, taken_at_ms) > (row.term, row.taken_at_ms) else None

    def _add_same_minutes(self, rows: Sequence[ClusterSample]) -> None:
        stored = [row.pk for row in rows if "content" in row.get_deferred_fields()]
        contents = dict(ClusterSample.objects.filter(pk__in=stored).values_list("pk", "content"))
        for row in rows:
            text = contents.get(row.pk)
            self._add_minute(row, json.loads(row.content if text is None else text))

    def _add_minute(self, row: ClusterSample, content: Mapping[str, Any]) -> None:
        """Adds the row of a minute that has none yet."""
        if not _is_minute_due(row):
            return
        minute_ms = row.taken_at_ms - row.taken_at_ms % MINUTE_MS
        try:
            before = json.loads(row.counted)
            series = series_of(content, row.taken_at_ms, before, row.counted_at_ms)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # A sample of one cluster that has another form must not stop the others.
            logger.warning("samples.odd", extra={"cluster": row.pk, "error": repr(error)})
            return
        row.minute_ms, row.counted_at_ms = minute_ms, row.taken_at_ms
        row.counted = orjson.dumps(content.get(TOPICS, {})).decode()
        self.minutes[row.pk, minute_ms] = series

    def _write_minutes(self) -> int:
        rows = [
            (self.owners[cluster_id], cluster_id, at, series)
            for (cluster_id, minute_ms), series in self.minutes.items()
            if self.days[0] <= (at := datetime.fromtimestamp(minute_ms / 1000, UTC)).date()
            and at.date() <= self.days[1]
        ]
        for start in range(0, len(rows), 1000):
            part = rows[start : start + 1000]
            names = ("organization_id", "cluster_id", "at", "series")
            records = [dict(zip(names, row, strict=True)) for row in part]
            _execute(ADD_MINUTES, [orjson.dumps(records).decode()])
        return len(rows)


def _is_minute_due(row: ClusterSample) -> bool:
    """Whether the minute of a sample has no row yet."""
    return row.taken_at_ms - row.taken_at_ms % MINUTE_MS > row.minute_ms


ADD_MINUTES = (
    "INSERT INTO provisioning_sampleminute (organization_id, cluster_id, at, series)"
    " SELECT * FROM json_to_recordset(%s::json) AS row (organization_id text, cluster_id text,"
    " at timestamptz, series jsonb)"
    " ON CONFLICT (cluster_id, at) DO UPDATE SET series = EXCLUDED.series"
)


# The columns of a sample, and those that change where its content did not. Contents go as one JSON
# text, because a driver in Python takes far longer over arrays of large texts.
COLUMNS = (
    "cluster_id",
    "organization_id",
    "term",
    "taken_at_ms",
    "content",
    "minute_ms",
    "counted_at_ms",
    "counted",
)
SEEN = ("cluster_id", "taken_at_ms", "minute_ms", "counted_at_ms", "counted")
PUT_SAMPLES = (
    "INSERT INTO provisioning_clustersample (cluster_id, organization_id, term, taken_at_ms,"
    " content, minute_ms, counted_at_ms, counted)"
    " SELECT * FROM json_to_recordset(%s::json) AS row (cluster_id text, organization_id text,"
    " term bigint, taken_at_ms bigint, content text, minute_ms bigint, counted_at_ms bigint,"
    " counted text)"
    " ON CONFLICT (cluster_id) DO UPDATE SET term = EXCLUDED.term,"
    " taken_at_ms = EXCLUDED.taken_at_ms, content = EXCLUDED.content,"
    " minute_ms = EXCLUDED.minute_ms, counted_at_ms = EXCLUDED.counted_at_ms,"
    " counted = EXCLUDED.counted"
)
NOTE_SEEN = (
    "UPDATE provisioning_clustersample AS row SET taken_at_ms = seen.taken_at_ms,"
    " minute_ms = seen.minute_ms, counted_at_ms = seen.counted_at_ms, counted = seen.counted"
    " FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[])"
    " AS seen (cluster_id, taken_at_ms, minute_ms, counted_at_ms, counted)"
    " WHERE row.cluster_id = seen.cluster_id"
)


def _write_contents(rows: Sequence[ClusterSample]) -> int:
    """Writes rows together, and one by one where one is refused; returns how many were."""
    try:
        with transaction.atomic():
            records = [{name: getattr(row, name) for name in COLUMNS} for row in rows]
            _execute(PUT_SAMPLES, [orjson.dumps(records).decode()])
    except (DataError, ValueError) as error:
        if len(rows) == 1:
            logger.warning("samples.refused", extra={"cluster": rows[0].pk, "error": str(error)})
            return 1
        return sum(_write_contents([row]) for row in rows)
    return 0


def _execute(statement: str, parameters: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def _possible(names: set[str]) -> list[str]:
    """Names that PostgreSQL takes in a question."""
    return [name for name in names if len(name) <= 32 and "\0" not in name]

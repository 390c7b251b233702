"""Joins the small usage files of past days, and removes what they replace.

A replacement counts from the moment at which its manifest is taken in, and its files no more: both
are one transaction of `ingest`. What a job left without a manifest never counts. So this may end
anywhere, and the next night goes on.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

import pyarrow.parquet as pq

from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.ids import new_id
from console.base.common.tenancy import system_scope
from metering.choices import FileState
from metering.errors import RollupFailed
from metering.events.coverage import join_entries
from metering.events.errors import UsageFormatError
from metering.events.keys import data_key, manifest_key
from metering.events.manifests import ClusterEntry, ReplacedFile, UsageManifest, encode_manifest
from metering.events.store import read_manifest
from metering.models import FileCoverage, RollupPointer, TopicName, UsageFile
from metering.periods import DAY, MINUTES_KEPT, from_ms
from metering.services.completeness import entries_of
from metering.services.holding import hold_lock
from metering.services.ingest import ingest_usage, usage_store
from metering.services.run_folders import MANIFEST, OUTPUT, RunFolder, run_store
from metering.services.spark import CompactJob, Say, run_compact
from metering.services.totals import UsageFileRef
from metering.stores import hadoop_root

logger = logging.getLogger(__name__)

LOCK = "usage_compaction"
AGENT = "compact_files"
# Files are joined once no minute of theirs is kept, so that none of their rows is added to minutes
# any more, and late files have come.
JOINED_AFTER = MINUTES_KEPT + 2 * DAY
# How long replaced files stay: longer than any job that began to read them.
REPLACED_KEPT = timedelta(days=7)
# Days of one night, so that after a long time away the roll-ups of the next night are not late.
DAYS_A_NIGHT = 40
REMOVED_A_NIGHT = 50_000
FOREVER_S = float("inf")


def compact_past_days(*, job: CompactJob = run_compact, say: Say = lambda line: None) -> int:
    """Joins files of past days, and removes replaced ones; returns how many replacements it made.

    A day that fails is logged and is due again the next night.
    """
    made = 0
    for day in _due_days():
        try:
            made += compact_day(day, job=job, say=say)
        except Exception:
            logger.exception("usage.compaction_failed", extra={"day": str(day)})
    remove_replaced()
    return made


def compact_day(day: date, *, job: CompactJob = run_compact, say: Say = lambda line: None) -> int:
    """Joins the files that were emitted on a day; returns how many replacements it made.

    Where another process does it, nothing happens. Raises `RollupFailed` where the job fails, and
    `OSError` where a store cannot be reached.
    """
    cell, made = config().cell.id, 0
    with hold_lock(LOCK, f"{cell}/{day}") as other:
        if other is not None:
            return 0
        # A replacement whose manifest was written before this process's predecessor died counts
        # first; otherwise its files would be joined again.
        ingest_usage(since=day, limit_s=FOREVER_S, wait=True)
        for files in _groups(_joinable_files(cell, day)):
            made += _join_files(day, files, job, say)
    return made


def remove_replaced() -> int:
    """Removes files from the store that were replaced long ago; returns how many.

    Only where the replacement is there, whole. It may be interrupted anywhere.
    """
    store, removed = usage_store(), 0
    before = now() - REPLACED_KEPT
    files = UsageFile.objects.filter(
        cell=config().cell.id, replaced_by__found_at__lt=before, removed_at__isnull=True
    )
    by_replacement: dict[str, list[str]] = {}
    ordered = files.order_by("replaced_by", "key").values_list("replaced_by", "key")
    for replacement, key in ordered[:REMOVED_A_NIGHT]:
        by_replacement.setdefault(str(replacement), []).append(key)
    for replacement, keys in by_replacement.items():
        try:
            read_manifest(store, manifest_key(replacement), verify=True)
        except (UsageFormatError, FileNotFoundError) as error:
            logger.error("usage.replacement_lost", extra={"file": replacement, "error": str(error)})
            continue
        for key in keys:
            # The manifest goes first: the two have one name, and keys are in order.
            store.remove(key.removesuffix("parquet"))
        UsageFile.objects.filter(pk__in=keys).update(removed_at=now())
        removed += len(keys)
    if removed:
        logger.info("usage.replaced_removed", extra={"files": removed})
    return removed


def _due_days() -> list[date]:
    """Days of emission with files that are not joined, in order."""
    last = (now() - JOINED_AFTER).date()
    files = UsageFile.objects.filter(
        cell=config().cell.id, day__lt=last, state=FileState.INGESTED, joined=0, replaced_by=None
    )
    days = files.order_by("day").values_list("day", flat=True).distinct()
    return [day for day in days if len(_joinable_files(config().cell.id, day)) > 1][:DAYS_A_NIGHT]


def _joinable_files(cell: str, day: date) -> list[UsageFile]:
    """Files that were emitted on a day and whose rows are published, by key."""
    files = UsageFile.objects.filter(
        cell=cell, day=day, state=FileState.INGESTED, joined=0, replaced_by=None
    )
    pointers = RollupPointer.objects.final().filter(cell=cell)
    published = set(pointers.values_list("day", flat=True))
    return [file for file in files.order_by("key") if set(_days_of(file)) <= published]


def _days_of(file: UsageFile) -> Iterator[date]:
    if file.window_start_ms is None or file.window_end_ms is None:
        return
    day = from_ms(file.window_start_ms).date()
    last = from_ms(max(file.window_start_ms, file.window_end_ms - 1)).date()
    while day <= last:
        yield day
        day += DAY


def _groups(files: Iterable[UsageFile]) -> Iterator[list[UsageFile]]:
    """Files in groups of about the size of a replacement, each of at least two."""
    size_max = config().usage.joined_file_mib << 20
    group: list[UsageFile] = []
    size_bytes = 0
    for file in files:
        group.append(file)
        size_bytes += file.size_bytes
        if size_bytes >= size_max and len(group) > 1:
            yield group
            group, size_bytes = [], 0
    if len(group) > 1:
        yield group


def _join_files(day: date, files: Sequence[UsageFile], job: CompactJob, say: Say) -> int:
    """Joins some files, and has the replacement count; returns 0 where too few can be read."""
    folder = RunFolder(day, new_id("run"))
    inputs = [UsageFileRef(file.key, file.size_bytes, file.sha256, file.rows) for file in files]
    plain = {
        "version": 1,
        "run_id": folder.run_id,
        "day": day.isoformat(),
        "usage_root": hadoop_root(config().usage.location),
        "inputs": [asdict(file) for file in inputs],
    }
    folder.write(MANIFEST, json.dumps(plain).encode())
    say(f"{day}: {folder.run_id} joins {len(files)} usage files")
    report = job(folder, say)
    joined = set(report["joined"])
    sound = [file for file in files if file.key in joined]
    _check_report(report, sound)
    if len(sound) > 1:
        _put_replacement(folder, sound, folder.read(f"{OUTPUT}/{report['file']}"))
        # It is found by its manifest, like every other file.
        ingest_usage(since=day, limit_s=FOREVER_S, wait=True)
    run_store().remove(f"{folder.key}/")
    return int(len(sound) > 1)


def _check_report(report: dict[str, Any], files: Sequence[UsageFile]) -> None:
    """Raises `RollupFailed` where the job's file has not exactly the rows of the files."""
    failed = [check["detail"] for check in report["checks"] if not check["passed"]]
    rows = sum(file.rows for file in files)
    if failed or report["rows"] != rows:
        message = f"{report['rows']} rows were joined, of {rows}; {'; '.join(failed)}"
        raise RollupFailed(message)


def _put_replacement(folder: RunFolder, files: Sequence[UsageFile], data: bytes) -> None:
    """Stores the joined file, then its manifest, with which it counts."""
    cell = config().cell.id
    emitted_at_ms = max(file.emitted_at_ms for file in files)
    with_rows = [file for file in files if file.rows]
    manifest = UsageManifest(
        cell=cell,
        # By the run, so that what another run left is never taken for this one.
        key=data_key(cell, emitted_at_ms, hashlib.sha256(folder.run_id.encode()).hexdigest()),
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        rows=sum(file.rows for file in files),
        window_start_ms=min((file.window_start_ms or 0 for file in with_rows), default=0),
        window_end_ms=max((file.window_end_ms or 0 for file in with_rows), default=0),
        emitted_at_ms=emitted_at_ms,
        agent=AGENT,
        clusters=tuple(_joined_coverage(files)),
        topics=_topic_names(data),
        replaces=tuple(map(_replaced, files)),
    )
    store = usage_store()
    for key, content in (
        (manifest.key, data),
        (manifest_key(manifest.key), encode_manifest(manifest)),
    ):
        if not store.put_new(key, content):
            message = f"{key} exists"
            raise FileExistsError(message)


def _joined_coverage(files: Sequence[UsageFile]) -> Iterator[ClusterEntry]:
    """What the files cover, in as few entries as say the same, by cluster."""
    with system_scope():
        rows = FileCoverage.objects.filter(file__in=[file.pk for file in files])
        plain = list(rows.order_by("cluster_id").values_list("cluster_id", "entry"))
    of_cluster: dict[str, list[ClusterEntry]] = {}
    for cluster_id, entry in plain:
        of_cluster.setdefault(cluster_id, []).extend(entries_of(entry))
    for entries in of_cluster.values():
        yield from join_entries(entries)


def _topic_names(data: bytes) -> dict[str, str]:
    """Names of the topics that a file has rows of, by `<cluster id>/<topic id>`."""
    topics: set[tuple[str, str]] = set()
    place = ["cluster_id", "topic_id"]
    with pq.ParquetFile(io.BytesIO(data)) as parquet:
        for batch in parquet.iter_batches(columns=place):
            topics.update(zip(*(batch.column(name).to_pylist() for name in place), strict=True))
    with system_scope():
        names = TopicName.objects.filter(cluster_id__in={cluster for cluster, _ in topics})
        known = list(names.values_list("cluster_id", "topic_id", "name"))
    return {
        f"{cluster}/{topic}": name for cluster, topic, name in known if (cluster, topic) in topics
    }


def _replaced(file: UsageFile) -> ReplacedFile:
    return ReplacedFile(
        key=file.key,
        size_bytes=file.size_bytes,
        sha256=file.sha256,
        rows=file.rows,
        window_start_ms=file.window_start_ms or 0,
        window_end_ms=file.window_end_ms or 0,
        emitted_at_ms=file.emitted_at_ms,
    )

"""Takes usage files into the provisional minutes; each block and each window counts exactly once.

It pulls: agents only write files, so nothing is lost while PostgreSQL is away. What files add and
the record that it was added are one transaction; a lock keeps a second ingest out. The files of a
transaction are added together; where PostgreSQL refuses one of them, each by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
from django.db import DataError, OperationalError, transaction
from psycopg.errors import LockNotAvailable

from console.base.common import locks
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import FileState
from metering.events.errors import UsageFormatError
from metering.events.keys import manifest_key, parse_key
from metering.events.manifests import UsageManifest, matches_manifest, parse_manifest
from metering.events.records import USAGE_SCHEMA, count_rows, decode_usage
from metering.events.store import RemovingStore, UsageStore
from metering.models import (
    IngestState,
    LaneCoverage,
    ProvisionalMinute,
    RollupPointer,
    UsageFile,
)
from metering.periods import DAY, day_start
from metering.services.absorbing import Absorbed, absorb_files, absorb_replacements
from metering.services.completeness import judge_hours
from metering.services.discovery import find_files, settled_before
from metering.services.minute_parts import drop_parts, kept_since
from metering.services.running import remove_old_hours
from metering.services.waiting import waited_for
from metering.stores import open_usage_store

logger = logging.getLogger(__name__)

# Coverage of a lane is kept so much longer than its minutes. A lane without news for this long has
# no block of a kept minute, so nothing of it can be added twice.
COVERAGE_KEPT_LONGER = timedelta(days=1)
# Files per transaction, and bytes of their rows in memory beyond which there are fewer.
BATCH_FILES = 64
BATCH_BYTES = 64 * 1024 * 1024
# The columns of a usage file that change when it is tried again.
FILE_FACTS = (
    *("cell", "day", "emitted_at_ms", "tried_at", "state", "error", "size_bytes", "sha256", "rows"),
    *("window_start_ms", "window_end_ms", "agent", "joined"),
)
# A pass ends after this time, so that the worker is free; the next one continues.
PASS_S = 60.0


@dataclass(slots=True)
class IngestPass:
    """What one pass did: files and rows taken in, and damaged files."""

    files: int = 0
    rows: int = 0
    damaged: int = 0
    # Files that the next pass has to take in.
    remaining: int = 0


def usage_store() -> RemovingStore:
    """The store that all agents of the cell write to."""
    return waited_for(open_usage_store(config().usage.location), "the store of usage files")


def ingest_usage(
    *,
    store: UsageStore | None = None,
    since: date | None = None,
    limit_s: float = PASS_S,
    wait: bool = False,
) -> IngestPass:
    """Takes in new files; with `since`, also files that came late for days from then on.

    Where another ingest is running, this one ends early, or with `wait` waits for it. Raises
    `OSError` where the store cannot be reached.
    """
    store = store or usage_store()
    cell, at, began = config().cell.id, now(), time.monotonic()
    done = IngestPass()
    keys = find_files(store, _ingest_state(cell), at=at, since=since)
    for batch in _read_batches(store, cell, keys):
        if not _ingest_batch(cell, batch, done, wait=wait) or time.monotonic() - began > limit_s:
            break
    done.remaining = len(keys) - done.files - done.damaged
    _finish_pass(cell, settled=settled_before(at) if not done.remaining else None)
    if done.files or done.damaged:
        logger.info(
            "usage.ingested",
            extra={"files": done.files, "rows": done.rows, "damaged": done.damaged},
        )
    return done


def remove_old_minutes() -> int:
    """Removes minutes of published days, hours and lanes' coverage that are too old; returns of how
    many days it removed the minutes.

    Minutes of a day that is not published stay, however old they are: the day counts from them.
    While another ingest adds to the minutes, or somebody reads them for long, nothing is removed:
    the next pass tries again.
    """
    try:
        with system_scope():
            if not locks.try_lock("usage_ingest", config().cell.id):
                return 0
            before = kept_since()
            remove_old_hours(before)
            forgotten = kept_from(before) - COVERAGE_KEPT_LONGER
            LaneCoverage.objects.filter(changed_at__lt=forgotten).delete()
            # Last, since nobody reads minutes from then on until the commit.
            return drop_parts()
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        logger.info("usage.minutes_in_use")
        return 0


def kept_from(before: datetime) -> datetime:
    """The time of the oldest minute that stays, at most `before`. Needs the system's scope.

    What an older file says is not added any more: nobody knows what of it was added already.
    """
    oldest = ProvisionalMinute.objects.order_by("minute").values_list("minute", flat=True)
    unpublished = oldest.filter(minute__lt=before)
    for since in _published_days(before):
        unpublished = unpublished.exclude(minute__gte=since, minute__lt=since + DAY)
    return unpublished.first() or before


def _published_days(before: datetime) -> list[datetime]:
    """The beginnings of published days before one, from the first that has minutes, in order."""
    first = ProvisionalMinute.objects.order_by("minute").values_list("minute", flat=True).first()
    if first is None or first >= before:
        return []
    days = RollupPointer.objects.final().filter(
        cell=config().cell.id, day__gte=first.date(), day__lt=before.date()
    )
    return list(map(day_start, days.order_by("day").values_list("day", flat=True)))


def _read_batches(
    store: UsageStore, cell: str, keys: Iterable[str]
) -> Iterator[dict[str, ReadFile]]:
    """Reads files, outside of any transaction, and yields them by key, some at a time."""
    batch: dict[str, ReadFile] = {}
    size_bytes = 0
    for key in keys:
        try:
            batch[key] = file = _read_file(store, cell, key)
            size_bytes += file[1].nbytes
        except _Damaged as error:
            batch[key] = error
        if len(batch) == BATCH_FILES or size_bytes > BATCH_BYTES:
            yield batch
            batch, size_bytes = {}, 0
    if batch:
        yield batch


def _ingest_batch(
    cell: str, files: Mapping[str, ReadFile], done: IngestPass, *, wait: bool
) -> bool:
    """Takes files in that were read, in one transaction.

    Returns False where another ingest holds the lock.
    """
    with system_scope():
        if wait:
            locks.lock("usage_ingest", cell)
        elif not locks.try_lock("usage_ingest", cell):
            return False
        # Read under the lock: another ingest may have taken files in since the list was made.
        taken = UsageFile.objects.filter(pk__in=list(files), state=FileState.INGESTED)
        ingested = set(taken.values_list("pk", flat=True))
        keep_from = kept_from(kept_since())
        whole: list[WholeFile] = []
        for key, file in files.items():
            if key in ingested:
                done.files += 1
            elif isinstance(file, _Damaged):
                _record_damaged_file(cell, key, file)
                done.damaged += 1
            else:
                whole.append(file)
        absorbed = _take_in(whole, keep_from)
        for manifest, _ in whole:
            reason = absorbed.refused.get(manifest.key)
            if reason is not None:
                _record_damaged_file(cell, manifest.key, _Damaged(reason, manifest))
                done.damaged += 1
            else:
                done.files += 1
                done.rows += manifest.rows
        judge_hours(absorbed.touched)
    return True


def _take_in(files: Sequence[WholeFile], keep_from: datetime) -> Absorbed:
    """Adds files and their rows in `UsageFile`; files that cannot be added are refused."""
    try:
        with transaction.atomic():
            _write_files([manifest for manifest, _ in files], FileState.INGESTED)
            agents = [file for file in files if not file[0].replaces]
            absorbed = absorb_files(agents, keep_from=keep_from)
            # Last, because of the files that they replace some may be among these.
            replacements = [manifest for manifest, _ in files if manifest.replaces]
            absorbed.touched += absorb_replacements(replacements)
            return absorbed
    except (ValueError, DataError) as error:
        if len(files) == 1:
            return Absorbed(refused={files[0][0].key: str(error)})
    # One of them is refused, and only that one says which: the others are added by themselves.
    absorbed = Absorbed()
    for file in files:
        one = _take_in([file], keep_from)
        absorbed.touched += one.touched
        absorbed.refused |= one.refused
    return absorbed


class _Damaged(Exception):
    """A file that cannot be taken in; with its `manifest` where that could be read."""

    def __init__(self, reason: str, manifest: UsageManifest | None = None) -> None:
        super().__init__(reason)
        self.manifest = manifest


# A file's manifest and rows.
WholeFile = tuple[UsageManifest, pa.Table]
# The same, or why it cannot be taken in.
ReadFile = WholeFile | _Damaged


def _read_file(store: UsageStore, cell: str, key: str) -> WholeFile:
    try:
        manifest = parse_manifest(store.get(manifest_key(key)))
    except (OSError, UsageFormatError) as error:
        message = f"its manifest cannot be read: {error}"
        raise _Damaged(message) from error
    if (manifest.key, manifest.cell) != (key, cell):
        message = f"its manifest is of {manifest.key} of the cell {manifest.cell}"
        raise _Damaged(message)
    try:
        data = store.get(key)
        if not matches_manifest(manifest, data):
            message = "it has another size or digest than its manifest says"
            raise _Damaged(message, manifest)
        rows, count = _rows_of(manifest, data)
    except (OSError, UsageFormatError) as error:
        raise _Damaged(str(error), manifest) from error
    if count != manifest.rows:
        message = f"it has {count} rows, its manifest says {manifest.rows}"
        raise _Damaged(message, manifest)
    return manifest, rows


def _rows_of(manifest: UsageManifest, data: bytes) -> tuple[pa.Table, int]:
    """The rows of a file that are to be added, and how many it has. Raises `UsageFormatError`."""
    if not manifest.replaces:
        rows = decode_usage(data)
        return rows, rows.num_rows
    # Those of a replacement are the rows of files that it replaces, and may be many.
    return USAGE_SCHEMA.empty_table(), count_rows(data)


def _write_files(manifests: Sequence[UsageManifest], state: FileState, error: str = "") -> None:
    files = [
        UsageFile(
            key=manifest.key,
            state=state,
            error=error,
            size_bytes=manifest.size_bytes,
            sha256=manifest.sha256,
            rows=manifest.rows,
            window_start_ms=manifest.window_start_ms if manifest.rows else None,
            window_end_ms=manifest.window_end_ms if manifest.rows else None,
            agent=manifest.agent,
            joined=len(manifest.replaces),
            **_place_of(manifest.cell, manifest.key),
        )
        for manifest in manifests
    ]
    # One that was damaged keeps the time at which it was found.
    UsageFile.objects.bulk_create(
        files, update_conflicts=True, unique_fields=["key"], update_fields=FILE_FACTS
    )


def _record_damaged_file(cell: str, key: str, error: _Damaged) -> None:
    """Logs that a file is damaged, and writes its row with the state `DAMAGED` and the reason.

    A pass tries the file again after `TRY_AGAIN` (10 minutes), while passes list the file's day.
    Where PostgreSQL does not store what the manifest says, the row has the key and the reason only.
    Raises `ValueError` where `key` is no usage file's key.
    """
    reason = str(error).replace("\0", "\N{REPLACEMENT CHARACTER}")
    logger.warning("usage.damaged", extra={"file": key, "reason": reason})
    if error.manifest is not None:
        # The manifest may have texts or numbers that PostgreSQL does not store. Then only the key
        # is noted.
        with suppress(ValueError, DataError), transaction.atomic():
            _write_files([error.manifest], FileState.DAMAGED, reason)
            return
    facts = {"state": FileState.DAMAGED, "error": reason}
    UsageFile.objects.update_or_create(key=key, defaults=_place_of(cell, key) | facts)


def _place_of(cell: str, key: str) -> dict[str, Any]:
    """What a usage file's key says, and the time of this attempt."""
    parsed = parse_key(key)
    if parsed is None:
        message = f"{key!r} is no usage file's key"
        raise ValueError(message)
    return {
        "cell": cell,
        "day": parsed.day,
        "emitted_at_ms": parsed.emitted_at_ms,
        "tried_at": now(),
    }


def _ingest_state(cell: str) -> IngestState:
    return IngestState.objects.get_or_create(cell=cell)[0]


def _finish_pass(cell: str, *, settled: date | None) -> None:
    """Removes old minutes, and records how far this pass came."""
    remove_old_minutes()
    newest = UsageFile.objects.filter(cell=cell, state=FileState.INGESTED)
    emitted = newest.order_by("-emitted_at_ms").values_list("emitted_at_ms", flat=True).first()
    changes = {"ran_at": now(), "newest_emitted_at_ms": emitted or 0}
    if settled is not None:
        changes["settled_before"] = settled
    IngestState.objects.filter(cell=cell).update(**changes)

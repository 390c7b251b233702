"""Says in the audit log who read records of which topic, when, and which offsets.

A reading is what one actor reads of one topic until it pauses for `PAUSE`, an hour at most. Its
first page or live tail writes an entry at once. What follows is added to one row, and the sweep
turns that into the second entry. So a page costs one statement, however many are read, and the log
has two entries for them all. The row is committed before the answer is sent.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection

from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.ids import new_id
from console.base.common.models import AuditEntry
from console.base.common.requests import current_request_id
from console.base.common.tenancy import organization_scope, system_scope
from provisioning import kafka
from provisioning.administration.read_ranges import (
    Range,
    join_ranges,
    merge_ranges,
    ranges_of,
    shown_ranges,
)
from provisioning.models import Cluster, RecordReading
from provisioning.querysets import RecordReadingQuerySet

logger = logging.getLogger(__name__)

BEGAN, READ = "message.begin_reading", "message.read"
# A reading is over when nothing was read for so long, or when it has lasted for so long.
PAUSE = timedelta(minutes=10)
LASTS_MAX = timedelta(hours=1)
# A row with more ranges than the first number is brought down to the second one. Each page writes
# the whole row anew, so it stays small: at 1,000 ranges that took 4 ms, at 300 half of one.
RANGES_MAX, RANGES_KEPT = 300, 100
# So many ranges are in an entry, and at least one of each partition.
RANGES_SHOWN = 100
# A sweep ends so many readings, for so long; the next one goes on.
SWEEP_MAX, SWEEP_S_MAX = 10_000, 20.0

_ADD = """
INSERT INTO provisioning_recordreading AS known
    (id, organization_id, cluster_id, topic, actor_kind, actor_id, address, request_id, began_at,
    last_at, pages, live_tails, records, records_read, ranges, joined)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, false)
ON CONFLICT (organization_id, cluster_id, topic, actor_kind, actor_id) DO UPDATE SET
    last_at = greatest(known.last_at, EXCLUDED.last_at),
    pages = known.pages + EXCLUDED.pages,
    live_tails = known.live_tails + EXCLUDED.live_tails,
    records = known.records + EXCLUDED.records,
    records_read = known.records_read + EXCLUDED.records_read,
    ranges = known.ranges || EXCLUDED.ranges
RETURNING id, jsonb_array_length(ranges)
"""


@dataclass(frozen=True, slots=True)
class ReadPart:
    """What was read at a time. `records` were shown; `records_read` were read for it."""

    pages: int = 0
    live_tails: int = 0
    records: int = 0
    records_read: int = 0
    ranges: Sequence[Range] = ()


@dataclass
class TailRead:
    """Counts what a live tail shows, in its thread; another one takes it from time to time."""

    _records: int = 0
    _records_read: int = 0
    _ranges: list[Range] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, batch: kafka.TailBatch) -> None:
        """Adds what a batch shows."""
        with self._lock:
            self._records += len(batch.records)
            self._records_read += batch.records_read
            self._ranges += ranges_of(batch.records)

    def take(self) -> ReadPart | None:
        """What was added since the last call; None where nothing was."""
        with self._lock:
            if not self._records_read:
                return None
            read = ReadPart(
                records=self._records,
                records_read=self._records_read,
                ranges=merge_ranges(self._ranges),
            )
            self._records, self._records_read, self._ranges = 0, 0, []
        return read

    def put_back(self, read: ReadPart) -> None:
        """Adds what was taken and could not be noted."""
        with self._lock:
            self._records += read.records
            self._records_read += read.records_read
            self._ranges += read.ranges


def read_of_page(page: kafka.Page) -> ReadPart:
    """What is read with a page of records."""
    return ReadPart(
        pages=1,
        records=len(page.records),
        records_read=page.records_read,
        ranges=ranges_of(page.records),
    )


def note_reading(*, actor: Actor, cluster: Cluster, topic: str, read: ReadPart) -> None:
    """Adds to the actor's reading of a topic, and audits one that begins.

    Whoever shows records calls it, in the tenancy scope of the organization, before they are shown.
    """
    reading_id, moment = new_id("rdg"), now()
    values: list[str | int | datetime] = [
        *(reading_id, actor.organization_id, cluster.pk, topic, actor.kind, actor.id),
        *(actor.address, current_request_id(), moment, moment),
        *(read.pages, read.live_tails, read.records, read.records_read),
        json.dumps(read.ranges),
    ]
    with connection.cursor() as cursor:
        cursor.execute(_ADD, values)
        known_id, ranges = cursor.fetchone() or (reading_id, 0)
    if known_id == reading_id:
        record_audit(
            actor=actor, action=BEGAN, target_type="topic", target_id=f"{cluster.pk}/{topic}"
        )
    if ranges > RANGES_MAX:
        _bound_ranges(known_id)


def end_readings() -> int:
    """Writes the entries of readings that are over; returns how many. It may be repeated."""
    with system_scope():
        rows = _over(now()).order_by("last_at").values_list("organization_id", "pk")
        over = list(rows[:SWEEP_MAX])
    deadline, ended = time.monotonic() + SWEEP_S_MAX, 0
    for organization_id, reading_id in over:
        if time.monotonic() > deadline:
            break
        try:
            with organization_scope(organization_id):
                ended += _end_reading(organization_id, reading_id)
        except Exception:
            # One that fails must not keep those behind it out of the log.
            logger.exception("reading.failed", extra={"reading": reading_id})
    return ended


def _over(moment: datetime) -> RecordReadingQuerySet:
    return RecordReading.objects.over(last_before=moment - PAUSE, began_before=moment - LASTS_MAX)


def _end_reading(organization_id: str, reading_id: str) -> bool:
    """Turns a row into its entry; False where it was ended or has gone on meanwhile."""
    rows = _over(now()).for_organization(organization_id).select_for_update(skip_locked=True)
    reading = rows.filter(pk=reading_id).first()
    if reading is None:
        return False
    _entry_of(reading).save(force_insert=True)
    reading.delete()
    return True


def _entry_of(reading: RecordReading) -> AuditEntry:
    merged = merge_ranges(reading.ranges)
    joined = join_ranges(merged, at_most=RANGES_SHOWN)
    counts = {
        "pages": reading.pages,
        "live_tails": reading.live_tails,
        "records": reading.records,
        "records_read": reading.records_read,
    }
    detail: dict[str, object] = {
        **{name: count for name, count in counts.items() if count},
        "began_at": reading.began_at.isoformat(),
        "ended_at": reading.last_at.isoformat(),
        "offsets": shown_ranges(reading.topic, joined),
    }
    if reading.joined or len(joined) < len(merged):
        # Some offsets within these ranges were not shown.
        detail["offsets_joined"] = True
    return AuditEntry(
        organization_id=reading.organization_id,
        action=READ,
        actor_kind=reading.actor_kind,
        actor_id=reading.actor_id,
        target_type="topic",
        target_id=f"{reading.cluster_id}/{reading.topic}",
        request_id=reading.request_id,
        address=reading.address,
        detail=detail,
    )


def _bound_ranges(reading_id: str) -> None:
    """Merges the ranges of a row that the transaction has locked, and joins them where needed."""
    reading = RecordReading.objects.get(pk=reading_id)
    merged = merge_ranges(reading.ranges)
    kept = join_ranges(merged, at_most=RANGES_KEPT)
    reading.ranges, reading.joined = kept, reading.joined or len(kept) < len(merged)
    reading.save(update_fields=["ranges", "joined"])

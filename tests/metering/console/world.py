"""Writes usage into the tables, for tests of what reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import HoursIn, RunState
from metering.minutes import Additions
from metering.models import (
    ClusterCoverage,
    JudgedHour,
    RollupPointer,
    RollupRun,
    TopicName,
    UsageRow,
)
from metering.periods import DAY, HOUR, day_start, to_ms
from metering.services.publishing import point_day
from metering.services.run_folders import HOURS, RunFolder
from metering.services.running import add_minutes
from metering.services.totals import files_of_day, inputs_sha256

HOURS_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("organization_id", "cluster_id", "topic_id")),
        *((name, pa.string()) for name in ("principal", "meter")),
        *((name, pa.int64()) for name in ("window_start_ms", "window_end_ms")),
        ("quantity", pa.decimal128(38, 0)),
        ("billed", pa.bool_()),
    ]
)
# Small, so that a few rows are several groups.
ROWS_A_GROUP = 3
TOPIC_ID = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True)
class Used:
    """What a principal used of a topic; in a day's row, or from a time on."""

    organization_id: str
    cluster_id: str
    meter: str
    quantity: int
    topic_id: str = TOPIC_ID
    principal: str = "User:cred_aaaaaaaaaaaaaaaaaaaa"
    billed: bool = True
    hour: int = 0


def publish_day(
    day: date,
    used: Iterable[Used],
    *,
    cell: str = "",
    early: bool = False,
    hours_in: HoursIn = HoursIn.FILES,
) -> RollupRun:
    """Makes a published run whose hours and days are what was used.

    `early`: it was made before the day was over.
    """
    used = list(used)
    cell = cell or config().cell.id
    with system_scope():
        files = files_of_day(cell, day)
        run = RollupRun.objects.create(
            cell=cell, day=day, inputs_sha256=inputs_sha256(files), hours_in=hours_in
        )
        hours = list(_rows(run, "hour", used))
        if hours_in == HoursIn.FILES:
            write_hours(run, hours)
        else:
            UsageRow.objects.bulk_create(hours)
        UsageRow.objects.bulk_create(_rows(run, "day", used))
        run.state, run.published_at, run.finished_at = RunState.PUBLISHED, now(), now()
        run.save()
        pointer = RollupPointer.objects.filter(cell=cell, day=day).first()
        point_day(pointer or RollupPointer(cell=cell, day=day), run.pk, early=early)
    return run


def write_hours(run: RollupRun, rows: Iterable[UsageRow]) -> None:
    """Writes rows into the files of a run's hours, as the job does, and their number in it."""
    ordered = sorted(rows, key=lambda row: (row.organization_id, row.cluster_id, row.window_start))
    same = [name for name in HOURS_SCHEMA.names if not name.endswith("_ms")]
    plain = [
        {name: getattr(row, name) for name in same}
        | {"window_start_ms": to_ms(row.window_start), "window_end_ms": to_ms(row.window_end)}
        for row in ordered
    ]
    folder = Path(RunFolder(run.day, run.pk).path(HOURS))
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(plain, schema=HOURS_SCHEMA)
    pq.write_table(
        table, folder / "part-0.parquet", row_group_size=ROWS_A_GROUP, write_page_checksum=True
    )
    run.report = {"hours": len(plain)}


def make_hours_complete(
    organization_id: str, cluster_id: str, start: datetime, end: datetime
) -> None:
    """Makes every hour in [start, end) a complete one."""
    hours = int((end - start) / HOUR)
    with system_scope():
        JudgedHour.objects.bulk_create(
            JudgedHour(
                organization_id=organization_id,
                cluster_id=cluster_id,
                hour=start + number * HOUR,
                complete=True,
            )
            for number in range(hours)
        )
        ClusterCoverage.objects.update_or_create(
            cluster_id=cluster_id,
            defaults={
                "organization_id": organization_id,
                "storage_ms": "{}",
                "as_of_ms": to_ms(end),
            },
        )


def use_minute(used: Used, minute: datetime, *, minutes: int = 1) -> None:
    """Adds provisional usage of one minute, or of a window of several, as ingest does."""
    added = Additions(
        organization_id=[used.organization_id],
        cluster_id=[used.cluster_id],
        topic_id=[used.topic_id],
        principal=[used.principal],
        meter=[used.meter],
        billed=[used.billed],
        window_start_ms=[to_ms(minute)],
        minutes=[minutes],
        quantity=[used.quantity],
    )
    with system_scope():
        add_minutes(asdict(added), keep_from=minute)


def name_topic(organization_id: str, cluster_id: str, name: str, topic_id: str = TOPIC_ID) -> None:
    """Gives a topic its name."""
    with system_scope():
        TopicName.objects.create(
            organization_id=organization_id, cluster_id=cluster_id, topic_id=topic_id, name=name
        )


def _rows(run: RollupRun, granularity: str, used: list[Used]) -> Iterable[UsageRow]:
    totals: dict[tuple[str, str, str, str, str, bool, int], int] = {}
    for usage in used:
        hour = usage.hour if granularity == "hour" else 0
        owner, topic = (usage.organization_id, usage.cluster_id), (usage.topic_id, usage.principal)
        whole = (*owner, *topic, usage.meter, usage.billed, hour)
        totals[whole] = totals.get(whole, 0) + usage.quantity
    length = HOUR if granularity == "hour" else DAY
    for whole, quantity in totals.items():
        organization_id, cluster_id, topic_id, principal, meter, billed, hour = whole
        start = day_start(run.day) + timedelta(hours=hour)
        digest = hashlib.sha256(f"{run.pk} {granularity} {whole}".encode()).digest()
        yield UsageRow(
            id="ur_" + "".join("abcdefghijklmnopqrstuvwxyz234567"[b & 31] for b in digest[:20]),
            run=run,
            granularity=granularity,
            organization_id=organization_id,
            cluster_id=cluster_id,
            topic_id=topic_id,
            principal=principal,
            meter=meter,
            window_start=start,
            window_end=start + length,
            quantity=Decimal(quantity),
            billed=billed,
        )

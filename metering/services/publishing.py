"""Makes a roll-up's rows a day's current ones, in one transaction, if they are what they should be.

Lock → copy into the staging table → check → add versioned rows → flip the pointer. Nothing of it is
seen before all of it is, and nothing that was published before is changed.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
from django.db import connection

from console.base.common import locks
from console.base.common.clock import now
from console.base.common.ids import RANDOM_CHARS
from console.base.common.tenancy import system_scope
from metering.choices import Granularity, Meter, RunState
from metering.errors import Check, PublishRefused, RollupBusy, RollupFailed
from metering.models import RollupPointer, RollupRun
from metering.periods import DAY, HOUR_MS, day_start, to_ms

LOCK = "usage_rollup"
ROWS_A_BATCH = 50_000
FOLDERS = {Granularity.HOUR.value: "hours", Granularity.DAY.value: "days"}
KEY = ["cluster_id", "topic_id", "principal", "meter", "window_start_ms", "billed"]
VALUES = [
    *("organization_id", "cluster_id", "topic_id", "principal", "meter"),
    *("window_start_ms", "window_end_ms", "quantity", "billed"),
]
COPY = f"""
COPY metering_stagedrow (id, run_id, granularity, {", ".join(VALUES)}) FROM STDIN (FORMAT csv)
"""
ADD = """
INSERT INTO metering_usagerow (id, run_id, granularity, organization_id, cluster_id, topic_id,
    principal, meter, window_start, window_end, quantity, billed)
SELECT id, run_id, granularity, organization_id, cluster_id, topic_id, principal, meter,
    to_timestamp((window_start_ms / 1000)::double precision),
    to_timestamp((window_end_ms / 1000)::double precision), quantity, billed
FROM metering_stagedrow WHERE run_id = %s
"""
TOTALS = """
SELECT granularity, meter, count(*), sum(quantity) FROM metering_stagedrow
WHERE run_id = %s GROUP BY 1, 2
"""
MISPLACED = """
SELECT count(*) FROM metering_stagedrow WHERE run_id = %(run)s AND (
    window_start_ms < %(start)s OR window_end_ms > %(end)s
    OR window_end_ms - window_start_ms
        <> CASE granularity WHEN 'hour' THEN %(hour)s ELSE %(end)s - %(start)s END
    OR (window_start_ms - %(start)s) %% %(hour)s <> 0
    OR organization_id = '' OR cluster_id = '' OR quantity < 0)
"""
DIFFERING = """
SELECT count(*) FROM (
    SELECT FROM metering_stagedrow WHERE run_id = %s
    GROUP BY organization_id, cluster_id, topic_id, principal, meter, billed
    HAVING coalesce(sum(quantity) FILTER (WHERE granularity = 'hour'), 0)
        <> coalesce(sum(quantity) FILTER (WHERE granularity = 'day'), 0)
) AS each
"""


def publish(run: RollupRun, output: Path, report: dict[str, Any], *, replaces: str | None) -> bool:
    """Publishes a run that replaces another (its id) or none; False if that one has the same rows.

    Raises `PublishRefused`, `RollupBusy` where another run was published meanwhile, `RollupFailed`.
    """
    with system_scope():
        if not locks.try_lock(LOCK, lock_name(run.cell, run.day)):
            raise RollupBusy
        pointer = RollupPointer.objects.filter(cell=run.cell, day=run.day).first()
        if (pointer.run_id if pointer else None) != replaces:
            message = f"{pointer and pointer.run_id} was published while this one ran"
            raise RollupBusy(message)
        run.report, run.content_sha256 = report, str(report["content_sha256"])
        run.finished_at = now()
        if pointer and pointer.run.content_sha256 == run.content_sha256:
            run.state = RunState.UNCHANGED
            run.save()
            return False
        _stage(run, output)
        checks = _checks(run, report)
        if not all(check.passed for check in checks):
            raise PublishRefused(checks)
        _execute(ADD, [run.pk])
        _execute("DELETE FROM metering_stagedrow WHERE run_id = %s", [run.pk])
        run.state, run.published_at = RunState.PUBLISHED, run.finished_at
        run.save()
        RollupPointer.objects.update_or_create(
            cell=run.cell, day=run.day, defaults={"run": run, "changed_at": run.finished_at}
        )
    return True


def lock_name(cell: str, day: date) -> str:
    """What the advisory lock of a day's roll-up is called."""
    return f"{cell}/{day}"


def row_id(run_id: str, granularity: str, key: Sequence[object]) -> str:
    """A row's id, which follows from its run and its key: 100 bits of a hash."""
    text = "\0".join([run_id, granularity, *map(str, key)])
    digest = hashlib.blake2b(text.encode(), digest_size=15).digest()
    return f"ur_{base64.b32encode(digest).decode().lower()[:RANDOM_CHARS]}"


def _stage(run: RollupRun, output: Path) -> None:
    """Copies hours and days in as they are in the job's files."""
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for granularity, folder in FOLDERS.items():
            for batch in _batches(output / folder):
                copy.write(_csv(run, granularity, batch))


def _batches(folder: Path) -> Iterator[pa.Table]:
    try:
        for file in sorted(folder.glob("*.parquet")):
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=ROWS_A_BATCH):
                    yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        message = f"what the job wrote cannot be read: {error}"
        raise RollupFailed(message) from error


def _csv(run: RollupRun, granularity: str, rows: pa.Table) -> bytes:
    others = set(rows.column("cell").unique().to_pylist()) - {run.cell}
    if others:
        message = f"the job wrote rows of other cells: {sorted(map(str, others))}"
        raise RollupFailed(message)
    keys = zip(*(rows.column(name).to_pylist() for name in KEY), strict=True)
    count = rows.num_rows
    columns = {
        "id": pa.array([row_id(run.pk, granularity, key) for key in keys], pa.string()),
        "run_id": pa.array([run.pk] * count, pa.string()),
        "granularity": pa.array([granularity] * count, pa.string()),
        **{name: rows.column(name) for name in VALUES},
        "quantity": rows.column("quantity").cast(pa.string()),
    }
    buffer = io.BytesIO()
    options = pc_csv.WriteOptions(include_header=False)
    pc_csv.write_csv(pa.table(columns), buffer, options)
    return buffer.getvalue()


def _checks(run: RollupRun, report: dict[str, Any]) -> list[Check]:
    """What the job says of itself, and whether what was copied is what it says."""
    found = _query(TOTALS, [run.pk])
    counts = dict.fromkeys(FOLDERS, 0)
    totals: dict[str, dict[str, str]] = {granularity: {} for granularity in FOLDERS}
    for granularity, meter, count, total in found:
        counts[granularity] += count
        totals[granularity][meter] = str(total)
    start = day_start(run.day)
    span = {"run": run.pk, "start": to_ms(start), "end": to_ms(start + DAY), "hour": HOUR_MS}
    misplaced = _query(MISPLACED, span)[0][0]
    differing = _query(DIFFERING, [run.pk])[0][0]
    unknown = sorted({meter for _, meter, _, _ in found} - set(Meter.values))
    control = {meter: n for meter, n in report["control_totals"].items() if int(n)}
    copied = {
        granularity: {meter: n for meter, n in each.items() if int(n)}
        for granularity, each in totals.items()
    }
    return [
        *(
            Check(check["name"], bool(check["passed"]), str(check["detail"]))
            for check in report["checks"]
        ),
        _equal("published_run", (run.pk, run.day.isoformat()), (report["run_id"], report["day"])),
        _equal("published_hours", counts["hour"], report["hours"]),
        _equal("published_days", counts["day"], report["days"]),
        _equal("published_hour_totals", copied["hour"], control),
        _equal("published_day_totals", copied["day"], control),
        _equal("published_days_are_sums_of_hours", differing, 0),
        _equal("published_windows", misplaced, 0),
        _equal("published_meters", unknown, []),
    ]


def _equal(name: str, found: object, expected: object) -> Check:
    return Check(name, found == expected, f"{found}, and {expected} expected")


def _query(statement: str, parameters: Any) -> list[Any]:  # noqa: ANN401 - a list or a mapping
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[Any] = cursor.fetchall()
    return found


def _execute(statement: str, parameters: Sequence[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)

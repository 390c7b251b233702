"""Publishes a roll-up: makes its rows a day's current ones, in one transaction, if all checks pass.

The steps are: check the files, lock, copy days into the staging table, check, fold the smallest
pairs, add versioned rows, move the pointer. Hours stay in the run's files. Readers follow the
pointer, so they see the old rows and hours until the commit and all new ones after it. Rows that
were published before never change: invoices name them.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
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
from metering.choices import Granularity, RunState, UsageMeter
from metering.errors import Check, PublishRefused, RollupBusy, RollupFailed
from metering.models import RollupPointer, RollupRun
from metering.periods import DAY, day_start, to_ms
from metering.services.folding import fold_pairs
from metering.services.run_checks import HoursContent, read_content
from metering.services.running import fold_run

LOCK = "usage_rollup"
# Rows that are turned into CSV at once: they bound the memory, whatever the size of the day.
ROWS_A_BATCH = 50_000
DAYS = Granularity.DAY.value
# What identifies a row within its run and granularity, in the order that `row_id` hashes. Ids of
# published rows follow from it, so that neither the columns nor their order may ever change.
KEY = ["cluster_id", "topic_id", "principal", "meter", "window_start_ms", "billed"]
# The columns of the job's files that are copied as they are, in the order of `COPY_ROWS`.
VALUES = [
    *("organization_id", "cluster_id", "topic_id", "principal", "meter"),
    *("window_start_ms", "window_end_ms", "quantity", "billed"),
]
COPY_ROWS = f"""
COPY metering_stagedrow (id, run_id, granularity, {", ".join(VALUES)}) FROM STDIN (FORMAT csv)
"""
ADD_ROWS = """
INSERT INTO metering_usagerow (id, run_id, granularity, organization_id, cluster_id, topic_id,
    principal, meter, window_start, window_end, quantity, billed)
SELECT id, run_id, granularity, organization_id, cluster_id, topic_id, principal, meter,
    to_timestamp((window_start_ms / 1000)::double precision),
    to_timestamp((window_end_ms / 1000)::double precision), quantity, billed
FROM metering_stagedrow WHERE run_id = %s
"""
# What was copied, as PostgreSQL counts it: compared with the job's report.
TOTALS = """
SELECT meter, count(*), sum(quantity) FROM metering_stagedrow WHERE run_id = %s GROUP BY 1
"""
# Rows that no correct job writes: not of the day, without an owner, or below zero.
MISPLACED = """
SELECT count(*) FROM metering_stagedrow WHERE run_id = %(run)s AND (
    window_start_ms <> %(start)s OR window_end_ms <> %(end)s
    OR organization_id = '' OR cluster_id = '' OR quantity < 0)
"""


def publish_run(
    run: RollupRun, output: Path, report: dict[str, Any], *, replaces: str | None, early: bool
) -> bool:
    """Publishes a run; returns False, and adds no row, if the current run has the same rows.

    `replaces` is the id of the run that was current when this one began; None without one.
    `output` is the folder that the job wrote, `report` its report. `early`: the day was not over
    when the run began. Then the day goes on counting from its minutes.

    Raises `RollupBusy` where another run is being or was published meanwhile, `PublishRefused`
    where a check fails, and `RollupFailed` where the job's files cannot be read. Each rolls all of
    it back.
    """
    # Before the transaction: it reads all hours.
    hours = read_content(output, run.day)
    _refuse_other_cells(run, hours.cells)
    with system_scope():
        # The lock comes first: what is read below stays true only while no other run of the day
        # can be published. The caller holds the session's lock of the same name, which is lost
        # where the connection broke while the job ran; this one lasts until the commit. It does
        # not wait: whoever holds it publishes the day, and this run would be refused afterwards.
        if not locks.try_lock(LOCK, lock_name(run.cell, run.day)):
            raise RollupBusy
        # A run that was published since this one began may have read newer files. Its rows must not
        # be replaced by older ones.
        pointer = RollupPointer.objects.filter(cell=run.cell, day=run.day).first()
        if (pointer.run_id if pointer else None) != replaces:
            message = f"{pointer and pointer.run_id} was published while this run was being made"
            raise RollupBusy(message)
        # A day that counts from published rows never counts from its minutes again.
        early = early and (pointer is None or pointer.early)
        run.report, run.content_sha256 = report, str(report["content_sha256"])
        run.finished_at = now()
        # Before copying: with the same rows the pointer stays, so that a day's rows keep their ids
        # until they differ, and nothing is copied for nothing.
        if pointer and pointer.run.content_sha256 == run.content_sha256:
            run.state = RunState.UNCHANGED
            run.save()
            if pointer.early and not early:
                # Rows that were made early turn out to be those of the whole day.
                point_day(pointer, pointer.run_id, early=False)
            return False
        # The checks read the staged rows: what PostgreSQL holds, and not what the job's files were
        # meant to hold. They come before `ADD_ROWS`, because published rows cannot be removed.
        _stage_rows(run, output)
        checks = _check_run(run, report, hours)
        if not all(check.passed for check in checks):
            raise PublishRefused(checks)
        fold_pairs(run.pk, partial(row_id, run.pk, DAYS))
        _execute_statement(ADD_ROWS, [run.pk])
        # The staging table has no row security, so no row in it may outlive the transaction.
        _execute_statement("DELETE FROM metering_stagedrow WHERE run_id = %s", [run.pk])
        # Report, hash and state in one save: once the state is final, a trigger refuses changes.
        run.state, run.published_at = RunState.PUBLISHED, run.finished_at
        run.save()
        # Last, and in the same transaction: from the commit on the day's rows are this run's.
        point_day(pointer or RollupPointer(cell=run.cell, day=run.day), run.pk, early=early)
    return True


def point_day(pointer: RollupPointer, run_id: str, *, early: bool) -> None:
    """Has a day's pointer name a run, and unless it is early the running totals count its rows.

    Needs the lock of the day and the system's scope.
    """
    if not early:
        replaced = pointer.run_id if pointer.pk and not pointer.early else None
        fold_run(day=pointer.day, run_id=run_id, replaced=replaced)
    pointer.run_id, pointer.early, pointer.changed_at = run_id, early, now()
    pointer.save()


def lock_name(cell: str, day: date) -> str:
    """The name of the advisory lock of a day's roll-up."""
    return f"{cell}/{day}"


def row_id(run_id: str, granularity: str, key: Sequence[object]) -> str:
    """A row's id: 100 bits of a hash of its run and its key.

    Two rows with the same id would end the transaction, since the id is the primary key.
    """
    text = "\0".join([run_id, granularity, *map(str, key)])
    digest = hashlib.blake2b(text.encode(), digest_size=15).digest()
    return f"ur_{base64.b32encode(digest).decode().lower()[:RANDOM_CHARS]}"


def _stage_rows(run: RollupRun, output: Path) -> None:
    """Copies the days in the job's files into the staging table.

    By COPY, which for the many rows of a day is far faster than INSERT.
    """
    with connection.cursor() as cursor, cursor.copy(COPY_ROWS) as copy:
        for batch in _read_batches(output / "days"):
            copy.write(_encode_csv(run, batch))


def _read_batches(folder: Path) -> Iterator[pa.Table]:
    try:
        for file in sorted(folder.glob("*.parquet")):
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=ROWS_A_BATCH):
                    yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        message = f"what the job wrote cannot be read: {error}"
        raise RollupFailed(message) from error


def _refuse_other_cells(run: RollupRun, cells: Iterable[str]) -> None:
    """A roll-up is of one cell. Rows of another one would get ids and a pointer of this cell."""
    others = set(cells) - {run.cell}
    if others:
        message = f"the job wrote rows of other cells: {sorted(map(str, others))}"
        raise RollupFailed(message)


def _encode_csv(run: RollupRun, rows: pa.Table) -> bytes:
    _refuse_other_cells(run, rows.column("cell").unique().to_pylist())
    keys = zip(*(rows.column(name).to_pylist() for name in KEY), strict=True)
    count = rows.num_rows
    columns = {
        "id": pa.array([row_id(run.pk, DAYS, key) for key in keys], pa.string()),
        "run_id": pa.array([run.pk] * count, pa.string()),
        "granularity": pa.array([DAYS] * count, pa.string()),
        **{name: rows.column(name) for name in VALUES},
        # Text, because the CSV writer has no decimals of 38 digits.
        "quantity": rows.column("quantity").cast(pa.string()),
    }
    buffer = io.BytesIO()
    options = pc_csv.WriteOptions(include_header=False)
    pc_csv.write_csv(pa.table(columns), buffer, options)
    return buffer.getvalue()


def _check_run(run: RollupRun, report: dict[str, Any], hours: HoursContent) -> list[Check]:
    """The job's own checks, then checks of its hours and of the staged days against its report."""
    rows = _query_rows(TOTALS, [run.pk])
    start = day_start(run.day)
    span = {"run": run.pk, "start": to_ms(start), "end": to_ms(start + DAY)}
    misplaced = _query_rows(MISPLACED, span)[0][0]
    meters = {meter for meter, _, _ in rows} | hours.totals.keys()
    control = _nonzero_totals({meter: int(n) for meter, n in report["control_totals"].items()})
    copied = _nonzero_totals({meter: int(total) for meter, _, total in rows})
    return [
        *(
            Check(check["name"], bool(check["passed"]), str(check["detail"]))
            for check in report["checks"]
        ),
        _equal_check(
            "published_run", (run.pk, run.day.isoformat()), (report["run_id"], report["day"])
        ),
        _equal_check("published_hours", hours.rows, report["hours"]),
        _equal_check("published_days", sum(count for _, count, _ in rows), report["days"]),
        _equal_check("published_hour_totals", _nonzero_totals(hours.totals), control),
        _equal_check("published_day_totals", copied, control),
        _equal_check("published_days_are_sums_of_hours", hours.differing, 0),
        _equal_check("published_windows", misplaced + hours.misplaced, 0),
        _equal_check("published_meters", sorted(meters - set(UsageMeter.values)), []),
    ]


def _nonzero_totals(totals: Mapping[str, int]) -> dict[str, int]:
    """Totals by meter without those of 0: such a meter may be missing on either side."""
    return {meter: total for meter, total in totals.items() if total}


def _equal_check(name: str, actual: object, expected: object) -> Check:
    return Check(name, actual == expected, f"{actual}, and {expected} expected")


def _query_rows(statement: str, parameters: Any) -> list[Any]:  # noqa: ANN401 - a list or a mapping
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[Any] = cursor.fetchall()
    return rows


def _execute_statement(statement: str, parameters: Sequence[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)

"""The roll-up job without Spark: the oracle's result, written as Spark writes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from metering.models import RollupRun
from metering.services.run_folders import MANIFEST, OUTPUT, RunFolder
from metering.services.spark import Say, read_report
from tests.spark import oracle

TABLE = pa.schema(
    [
        ("cell", pa.string()),
        ("cluster_id", pa.string()),
        ("organization_id", pa.string()),
        ("topic_id", pa.string()),
        ("principal", pa.string()),
        ("meter", pa.string()),
        ("window_start_ms", pa.int64()),
        ("window_end_ms", pa.int64()),
        ("quantity", pa.decimal128(38, 0)),
        ("billed", pa.bool_()),
        ("source_rows", pa.int64()),
    ]
)


def plain_job(run: RollupRun, folder: RunFolder, say: Say) -> dict[str, Any]:
    """Rolls up in this process."""
    say("stage 1 of 1: all of it")
    output = Path(folder.path(OUTPUT))
    result = oracle.roll_up(Path(folder.path(MANIFEST)))
    write_table(output / "hours", result.hours)
    write_table(output / "days", result.days)
    (output / "quarantine").mkdir()
    if result.quarantine:
        rows = [row | {"reason": "conflict"} for row in result.quarantine]
        pq.write_table(pa.Table.from_pylist(rows), output / "quarantine" / "part-0.parquet")
    write_report(
        output,
        {
            "version": 1,
            "job": "rollup",
            "run_id": run.pk,
            "day": run.day.isoformat(),
            "rows_read": result.rows_read,
            "rows_distinct": result.rows_distinct,
            "duplicates": result.duplicates,
            "conflicts": result.conflicts,
            "damaged_inputs": [
                {"key": key, "reason": "differs", "detail": ""} for key in sorted(result.damaged)
            ],
            "control_totals": result.control_totals,
            "hours": len(result.hours),
            "days": len(result.days),
            "content_sha256": result.content_sha256,
            "checks": [{"name": "oracle", "passed": True, "detail": "it is one"}],
        },
    )
    return read_report(folder)


def write_table(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """A folder of Parquet files."""
    folder.mkdir(parents=True)
    exact = [row | {"quantity": Decimal(row["quantity"])} for row in rows]
    table = pa.Table.from_pylist(exact, schema=TABLE)
    half = table.num_rows // 2
    for number, part in enumerate([table.slice(0, half), table.slice(half)]):
        pq.write_table(part, folder / f"part-{number}.zstd.parquet")


def write_report(output: Path, report: dict[str, Any]) -> None:
    """Writes `report.json`, then `_SUCCESS.json`."""
    data = json.dumps(report).encode()
    (output / "report.json").write_bytes(data)
    success = {"run_id": report["run_id"], "report_sha256": hashlib.sha256(data).hexdigest()}
    (output / "_SUCCESS.json").write_text(json.dumps(success))


def spoiled_job(change: Any) -> Any:  # noqa: ANN401 - of any report
    """A job whose report `change` spoils."""

    def job(run: RollupRun, folder: RunFolder, say: Say) -> dict[str, Any]:
        report = plain_job(run, folder, say)
        change(report, Path(folder.path(OUTPUT)))
        return report

    return job

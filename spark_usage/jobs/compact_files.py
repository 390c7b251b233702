"""Joins usage files into one: `python -m spark_usage.jobs.compact_files`.

The new file has every row of the run's sound inputs, copies of rows too, so that a roll-up over it
is one over them. `report.json` says which inputs those are; the caller gives the file its place and
its manifest. `_SUCCESS.json` is written last.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_usage.checks import Check, equal_check
from spark_usage.errors import IncompleteRows, JobError
from spark_usage.extract import Extract, with_sound_rows
from spark_usage.jobs.runner import arguments_of, finish_run, load_run, main, parse_arguments
from spark_usage.progress import Progress
from spark_usage.run_manifest import RunManifest
from spark_usage.schemas import USAGE_SCHEMA
from spark_usage.storage import Storage, literal_path
from spark_usage.transforms.content import row_hash, row_sums
from spark_usage.transforms.inputs import is_incomplete

VERSION = 1
NAME = "compact_files"
STAGES = 5
FOLDER = "joined"


def compact_usage(spark: SparkSession, arguments: argparse.Namespace, progress: Progress) -> None:
    """The job: reads the inputs, writes their rows as one file, compares, and writes the report."""
    storage = Storage(spark)
    run = load_run(storage, arguments)
    output = arguments.output
    storage.make_folder(output)
    extracted, read_sha256 = with_sound_rows(spark, run, progress, _whole_rows)
    with progress.stage(f"write {extracted.content.row_count} rows as one file"):
        # In one task, and without a shuffle: the caller chooses inputs of one file's size.
        extracted.rows.coalesce(1).write.parquet(f"{output}/{FOLDER}")
    with progress.stage("check what was written, and report"):
        written = spark.read.schema(USAGE_SCHEMA).parquet(literal_path(f"{output}/{FOLDER}"))
        checks = [
            equal_check(
                "joined_as_read",
                "rows before and after writing",
                read_sha256,
                row_hash(row_sums(written).collect()),
            )
        ]
        finish_run(
            storage, output, _run_report(run, extracted, checks, _only_file(storage, output))
        )


def _whole_rows(rows: DataFrame) -> str:
    """The hash of the rows. Raises `IncompleteRows`: a file of such rows never counts, and would
    take the others of its replacement with it."""
    sums = row_sums(rows, is_incomplete()).collect()
    if sums[0]["flawed"]:
        raise IncompleteRows
    return row_hash(sums)


def _only_file(storage: Storage, output: str) -> str:
    files = [name for name in storage.sizes(f"{output}/{FOLDER}") if name.endswith(".parquet")]
    if len(files) != 1:
        message = f"{len(files)} files were written instead of one"
        raise JobError(message)
    return f"{FOLDER}/{files[0]}"


def _run_report(
    run: RunManifest, extracted: Extract, checks: Sequence[Check], file: str
) -> dict[str, Any]:
    """The content of `report.json`. `file` is relative to the output folder."""
    damaged = {damage.key for damage in extracted.damaged}
    return {
        "version": VERSION,
        "job": NAME,
        "run_id": run.run_id,
        "day": run.day.isoformat(),
        "file": file,
        "rows": extracted.content.row_count,
        "joined": [entry.key for entry in run.inputs if entry.key not in damaged],
        "damaged_inputs": [asdict(damage) for damage in extracted.damaged],
        "checks": [asdict(check) for check in checks],
    }


def run_job(argv: Sequence[str] | None = None) -> int:
    """Parses the command line and runs the job; returns the exit status."""
    parser = arguments_of(NAME, "Joins usage files into one file with the same rows.")
    return main(NAME, compact_usage, STAGES, parse_arguments(parser, argv))


if __name__ == "__main__":
    sys.exit(run_job())

"""Runs jobs in the tests' session and reads what they leave, by pyarrow."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_usage.jobs import reconcile, rollup
from spark_usage.progress import Progress
from tests.spark.oracle import Row, sorted_rows
from tests.spark.usage_files import DAY, Input, UsageFolder

# Compiles little: tests are many small jobs.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Result:
    """What a roll-up left in its folder; rows are sorted."""

    report: dict[str, Any]
    hours: list[Row] = field(repr=False)
    days: list[Row] = field(repr=False)
    quarantine: list[Row] = field(repr=False)

    @property
    def failed_checks(self) -> list[str]:
        """Names of the checks that did not pass."""
        return [check["name"] for check in self.report["checks"] if not check["passed"]]


class Runs:
    """Runs of the roll-up over one usage folder, each in an output folder of its own."""

    def __init__(self, spark: SparkSession, folder: UsageFolder) -> None:
        self.spark = spark
        self.folder = folder

    def __call__(self, inputs: list[Input], run_id: str = "run_1") -> Result:
        """Runs the job over inputs."""
        manifest = self.folder.run(inputs, run_id)
        output = self.folder.root / f"run_id={run_id}"
        progress = Progress(self.spark.sparkContext, rollup.STAGES)
        rollup.roll_up_usage(self.spark, arguments_for(manifest, output, run_id), progress)
        return read_result(output)


def reconcile_day(
    spark: SparkSession, folder: UsageFolder, inputs: list[Input], log: Mapping[str, Any]
) -> dict[str, Any]:
    """Runs `reconcile` over inputs; returns its report."""
    manifest = folder.run(inputs, "run_1")
    stated = folder.root / "log.json"
    stated.write_text(json.dumps(log))
    output = folder.root / "run_id=run_1"
    progress = Progress(spark.sparkContext, reconcile.STAGES)
    reconcile.reconcile_usage(spark, arguments_for(manifest, output, log=stated), progress)
    assert (output / "_SUCCESS.json").is_file()
    report: dict[str, Any] = json.loads((output / "report.json").read_text())
    return report


def arguments_for(
    manifest: Path | str,
    output: Path | str,
    run_id: str = "run_1",
    day: date = DAY,
    log: Path | str | None = None,
) -> argparse.Namespace:
    """The arguments of a job, as parsed."""
    return argparse.Namespace(
        manifest=str(manifest), output=str(output), run_id=run_id, day=day, log=str(log)
    )


def read_result(output: Path) -> Result:
    """What a finished roll-up left."""
    assert (output / "_SUCCESS.json").is_file()
    return Result(
        report=json.loads((output / "report.json").read_text()),
        hours=_rows(output / "hours"),
        days=_rows(output / "days"),
        quarantine=_rows(output / "quarantine"),
    )


def _rows(folder: Path) -> list[Row]:
    """The rows of a folder of Parquet; decimals as integers."""
    return sorted_rows(
        row | {"quantity": int(row["quantity"])}
        for path in folder.glob("*.parquet")
        for row in pq.read_table(io.BytesIO(path.read_bytes())).to_pylist()
    )

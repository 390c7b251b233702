"""Rolls usage files up by hour and by day: `python -m spark_usage.jobs.rollup`.

Reads the files that the run's manifest names and no other, and no clock: the same inputs give the
same result, on any day, on any machine. `report.json` says what was read, what was left out and
whether the checks passed; `_SUCCESS.json` comes last.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from spark_usage.checks import Check, content_checks, equal_check, totals_check
from spark_usage.errors import IncompleteRows
from spark_usage.extract import Extract, with_sound_rows
from spark_usage.jobs.runner import arguments_of, finish, load_run, main, parse, size_shuffles
from spark_usage.progress import Progress
from spark_usage.run_manifest import RunManifest
from spark_usage.schemas import QUANTITY, QUARANTINE_SCHEMA, ROLLUP_SCHEMA
from spark_usage.storage import Storage, literal_path
from spark_usage.transforms.conflicts import conflicts
from spark_usage.transforms.content import (
    TableContent,
    content_sha256,
    content_sums,
    table_content,
)
from spark_usage.transforms.days import days
from spark_usage.transforms.deduplicate import (
    deduplicate,
    deduplicate_in_doubt,
    disputed,
)
from spark_usage.transforms.hours import hour_slices, hours

VERSION = 1
NAME = "rollup"
STAGES = 6


@dataclass(slots=True)
class Counts:
    """Rows of all inputs after deduplication. `read_totals`: quantities as often as read."""

    distinct: int = 0
    duplicates: int = 0
    conflicts: int = 0
    conflicting_rows: int = 0
    incomplete: int = 0
    misplaced: int = 0
    read_totals: dict[str, int] = field(default_factory=dict)


def rollup(spark: SparkSession, arguments: argparse.Namespace, progress: Progress) -> None:
    """The job: extract, transform, load, and the report."""
    storage = Storage(spark)
    run = load_run(storage, arguments)
    output = arguments.output
    storage.make_folder(output)
    size_shuffles(spark, run)
    extracted, (slices, counts) = with_sound_rows(spark, run, progress, _summed)
    with progress.stage("write hours and days"):
        _quarantine(extracted, counts, f"{output}/quarantine")
        by_hour = hours(slices, run.day_start_ms)
        by_hour.write.parquet(f"{output}/hours")
        written_hours = _read(spark, ROLLUP_SCHEMA, f"{output}/hours")
        summed = days(written_hours, run.day_start_ms)
        summed.write.parquet(f"{output}/days")
        written_days = _read(spark, ROLLUP_SCHEMA, f"{output}/days")
    with progress.stage("check what was written"):
        tables = _contents(
            {"computed": by_hour, "hours": written_hours, "summed": summed, "days": written_days}
        )
        slices.unpersist()
        checks = [
            *content_checks(extracted.content),
            _window_check(counts),
            *_read_checks(extracted, counts),
            *_written_checks(**tables),
        ]
    with progress.stage("report"):
        finish(storage, output, report(run, extracted, counts, tables, checks))


def report(
    run: RunManifest,
    extracted: Extract,
    counts: Counts,
    tables: Mapping[str, TableContent],
    checks: Sequence[Check],
) -> dict[str, Any]:
    """What `report.json` says. Control totals are those of the day, by meter."""
    return {
        "version": VERSION,
        "job": NAME,
        "run_id": run.run_id,
        "day": run.day.isoformat(),
        "rows_read": extracted.content.row_count,
        "rows_distinct": counts.distinct,
        "duplicates": counts.duplicates,
        "conflicts": counts.conflicts,
        "conflicting_rows": counts.conflicting_rows,
        "damaged_inputs": [asdict(each) for each in extracted.damaged],
        "control_totals": {meter: str(n) for meter, n in tables["days"].totals.items()},
        "hours": tables["hours"].row_count,
        "days": tables["days"].row_count,
        "content_sha256": content_sha256({name: tables[name] for name in ("hours", "days")}),
        "checks": [asdict(check) for check in checks],
    }


def _summed(rows: DataFrame) -> tuple[DataFrame, Counts]:
    """The slices of hours, kept, and their counts. Raises `IncompleteRows`."""
    slices = hour_slices(deduplicate(rows)).persist()
    try:
        counts = _counts(_totals(slices))
        if counts.incomplete:
            raise IncompleteRows
        if not disputed(slices).isEmpty():
            slices.unpersist()
            slices = hour_slices(deduplicate_in_doubt(rows)).persist()
            counts = _counts(_totals(slices))
    except Exception:
        slices.unpersist()
        raise
    return slices, counts


def _totals(slices: DataFrame) -> list[Row]:
    return (
        slices.groupBy("meter", "agrees")
        .agg(
            sf.sum("identities").alias("identities"),
            sf.sum("copies").alias("copies"),
            sf.sum("incomplete").alias("incomplete"),
            sf.sum("misplaced").alias("misplaced"),
            sf.sum("copied_quantity").cast(QUANTITY).alias("copied_quantity"),
        )
        .collect()
    )


def _counts(totals: Iterable[Row]) -> Counts:
    counts = Counts()
    for row in totals:
        counts.incomplete += row["incomplete"]
        if row["agrees"]:
            counts.misplaced += row["misplaced"]
            counts.distinct += row["identities"]
            counts.duplicates += row["copies"] - row["identities"]
            counts.read_totals[row["meter"]] = int(row["copied_quantity"] or 0)
        else:
            counts.conflicts += row["identities"]
            counts.conflicting_rows += row["copies"]
    return counts


def _quarantine(extracted: Extract, counts: Counts, folder: str) -> None:
    """Writes the rows that contradict each other, and adds them to what was read."""
    if not counts.conflicts:
        # Without a look at the rows again.
        nothing = extracted.rows.limit(0).withColumn("reason", sf.lit(""))
        nothing.select(*QUARANTINE_SCHEMA.names).write.parquet(folder)
        return
    found = conflicts(extracted.rows, deduplicate_in_doubt(extracted.rows))
    found.write.parquet(folder)
    written = _read(found.sparkSession, QUARANTINE_SCHEMA, folder)
    sums = written.groupBy("meter").agg(sf.sum(sf.col("quantity").cast(QUANTITY)).alias("n"))
    for row in sums.collect():
        total = counts.read_totals.get(row["meter"], 0)
        counts.read_totals[row["meter"]] = total + int(row["n"])


def _read(spark: SparkSession, schema: StructType, folder: str) -> DataFrame:
    return spark.read.schema(schema).parquet(literal_path(folder))


def _contents(tables: Mapping[str, DataFrame]) -> dict[str, TableContent]:
    rows = content_sums(tables).collect()
    return {name: table_content(row for row in rows if row["table"] == name) for name in tables}


def _window_check(counts: Counts) -> Check:
    return Check(
        "windows_within_an_hour",
        counts.misplaced == 0,
        f"{counts.misplaced} of {counts.distinct} distinct rows are not within one hour",
    )


def _read_checks(extracted: Extract, counts: Counts) -> list[Check]:
    """Nothing was lost or made up between the files and the distinct rows."""
    accounted = counts.distinct + counts.duplicates + counts.conflicting_rows
    return [
        equal_check(
            "rows_accounted_for",
            "rows in the files, and distinct, duplicate and conflicting rows",
            extracted.content.row_count,
            accounted,
        ),
        totals_check(
            "totals_accounted_for",
            "quantities in the files, and after deduplication with all copies",
            extracted.content.totals,
            counts.read_totals,
        ),
    ]


def _written_checks(
    *, computed: TableContent, hours: TableContent, summed: TableContent, days: TableContent
) -> list[Check]:
    """What lies in the folder is what was computed, and days are the sums of hours."""
    return [
        equal_check(
            "hours_as_computed",
            "content of the hours before and after writing",
            content_sha256({"hours": computed}),
            content_sha256({"hours": hours}),
        ),
        equal_check(
            "days_are_sums_of_hours",
            "content of the sums of the hours, and of the days",
            content_sha256({"days": summed}),
            content_sha256({"days": days}),
        ),
        totals_check(
            "control_totals", "totals of the hours, and of the days", computed.totals, days.totals
        ),
    ]


def run_job(argv: Sequence[str] | None = None) -> int:
    """Parses the command line and runs the job; returns the exit status."""
    parser = arguments_of(NAME, "Rolls usage files up by hour and by day.")
    return main(NAME, rollup, STAGES, parse(parser, argv))


if __name__ == "__main__":
    sys.exit(run_job())

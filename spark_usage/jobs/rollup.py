"""Rolls usage files up by hour and by day: `python -m spark_usage.jobs.rollup`.

It reads only the files that the run's manifest names, and no clock: the same inputs give the same
result on any day and any machine. `report.json` says what was read, what was left out and whether
the checks passed; `_SUCCESS.json` is written last.
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
from spark_usage.jobs.runner import (
    arguments_of,
    finish_run,
    load_run,
    main,
    parse_arguments,
    size_shuffles,
)
from spark_usage.progress import Progress
from spark_usage.run_manifest import RunManifest
from spark_usage.schemas import QUANTITY, QUARANTINE_SCHEMA, ROLLUP_SCHEMA
from spark_usage.storage import Storage, literal_path
from spark_usage.transforms.conflicts import conflicting_rows
from spark_usage.transforms.content import (
    TableContent,
    content_sha256,
    content_sums,
    table_content,
)
from spark_usage.transforms.days import sum_days
from spark_usage.transforms.deduplicate import (
    deduplicate_rows,
    deduplicate_rows_in_doubt,
    disputed_clusters,
)
from spark_usage.transforms.hours import hour_slices, sum_hours
from spark_usage.transforms.versions import mark_superseded

VERSION = 1
NAME = "rollup"
STAGES = 6
# How rows of hours lie in their files. Readers look for clusters of one organization, and hours.
HOURS_ORDER = ("organization_id", "cluster_id", "window_start_ms", "meter", "topic_id")
ROWS_A_GROUP = 16_384
# Hours are far fewer rows than were read. Each file has a footer that readers read whole.
PARTITIONS_A_FILE = 16


@dataclass(slots=True)
class Counts:
    """Numbers of rows of all inputs after deduplication.

    `distinct`, `conflicts`, `incomplete`, `misplaced`, `of_blocks` and `of_files` count identities,
    `duplicates`, `superseded` and `conflicting_rows` rows. `read_totals` are quantities by meter
    with all copies counted.
    """

    distinct: int = 0
    duplicates: int = 0
    superseded: int = 0
    conflicts: int = 0
    conflicting_rows: int = 0
    incomplete: int = 0
    misplaced: int = 0
    of_blocks: int = 0
    of_files: int = 0
    read_totals: dict[str, int] = field(default_factory=dict)


def roll_up_usage(spark: SparkSession, arguments: argparse.Namespace, progress: Progress) -> None:
    """The job: reads the inputs, sums by hour and day, writes, checks, and writes the report."""
    storage = Storage(spark)
    run = load_run(storage, arguments)
    output = arguments.output
    storage.make_folder(output)
    size_shuffles(spark, run)
    extracted, (slices, counts) = with_sound_rows(spark, run, progress, _sum_slices)
    with progress.stage("write hours and days"):
        _write_quarantine(extracted, counts, f"{output}/quarantine")
        by_hour = sum_hours(slices, run.day_start_ms)
        _write_hours(by_hour, f"{output}/hours")
        written_hours = _read_table(spark, ROLLUP_SCHEMA, f"{output}/hours")
        summed = sum_days(written_hours, run.day_start_ms)
        summed.write.parquet(f"{output}/days")
        written_days = _read_table(spark, ROLLUP_SCHEMA, f"{output}/days")
    with progress.stage("check what was written"):
        tables = _contents_of(
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
        finish_run(storage, output, run_report(run, extracted, counts, tables, checks))


def run_report(
    run: RunManifest,
    extracted: Extract,
    counts: Counts,
    tables: Mapping[str, TableContent],
    checks: Sequence[Check],
) -> dict[str, Any]:
    """The content of `report.json`. Control totals are those of the day, by meter."""
    return {
        "version": VERSION,
        "job": NAME,
        "run_id": run.run_id,
        "day": run.day.isoformat(),
        "rows_read": extracted.content.row_count,
        "rows_distinct": counts.distinct,
        "duplicates": counts.duplicates,
        "superseded": counts.superseded,
        "conflicts": counts.conflicts,
        "conflicting_rows": counts.conflicting_rows,
        "damaged_inputs": [asdict(damage) for damage in extracted.damaged],
        "control_totals": {meter: str(n) for meter, n in tables["days"].totals.items()},
        "hours": tables["hours"].row_count,
        "days": tables["days"].row_count,
        "content_sha256": content_sha256({name: tables[name] for name in ("hours", "days")}),
        "checks": [asdict(check) for check in checks],
    }


def _sum_slices(rows: DataFrame) -> tuple[DataFrame, Counts]:
    """The slices of hours, persisted, and the counts of their rows. Raises `IncompleteRows`."""
    distinct = deduplicate_rows(rows)
    slices = hour_slices(distinct).persist()
    try:
        counts = _counts_of(_slice_totals(slices))
        if counts.incomplete:
            raise IncompleteRows
        is_disputed = not disputed_clusters(slices).isEmpty()
        is_mixed = counts.of_blocks > 0 and counts.of_files > 0
        if is_disputed or is_mixed:
            slices.unpersist()
            if is_disputed:
                distinct = deduplicate_rows_in_doubt(rows)
            slices = hour_slices(mark_superseded(distinct)).persist()
            counts = _counts_of(_slice_totals(slices))
    except Exception:
        slices.unpersist()
        raise
    return slices, counts


def _slice_totals(slices: DataFrame) -> list[Row]:
    return (
        slices.groupBy("meter", "agrees", "superseded")
        .agg(
            sf.sum("identities").alias("identities"),
            sf.sum("copies").alias("copies"),
            sf.sum("incomplete").alias("incomplete"),
            sf.sum("misplaced").alias("misplaced"),
            sf.sum("of_blocks").alias("of_blocks"),
            sf.sum("of_files").alias("of_files"),
            sf.sum("copied_quantity").cast(QUANTITY).alias("copied_quantity"),
        )
        .collect()
    )


def _counts_of(totals: Iterable[Row]) -> Counts:
    counts = Counts()
    for row in totals:
        counts.incomplete += row["incomplete"]
        counts.of_blocks += row["of_blocks"]
        counts.of_files += row["of_files"]
        if row["agrees"]:
            counts.misplaced += row["misplaced"]
            total = counts.read_totals.get(row["meter"], 0)
            counts.read_totals[row["meter"]] = total + int(row["copied_quantity"] or 0)
            if row["superseded"]:
                counts.superseded += row["copies"]
            else:
                counts.distinct += row["identities"]
                counts.duplicates += row["copies"] - row["identities"]
        else:
            counts.conflicts += row["identities"]
            counts.conflicting_rows += row["copies"]
    return counts


def _write_quarantine(extracted: Extract, counts: Counts, folder: str) -> None:
    """Writes the rows that contradict each other, and adds their quantities to `read_totals`."""
    if not counts.conflicts:
        # An empty table, without reading the rows again.
        nothing = extracted.rows.limit(0).withColumn("reason", sf.lit(""))
        nothing.select(*QUARANTINE_SCHEMA.names).write.parquet(folder)
        return
    conflicting = conflicting_rows(extracted.rows, deduplicate_rows_in_doubt(extracted.rows))
    conflicting.write.parquet(folder)
    written = _read_table(conflicting.sparkSession, QUARANTINE_SCHEMA, folder)
    sums = written.groupBy("meter").agg(sf.sum(sf.col("quantity").cast(QUANTITY)).alias("n"))
    for row in sums.collect():
        total = counts.read_totals.get(row["meter"], 0)
        counts.read_totals[row["meter"]] = total + int(row["n"])


def _write_hours(by_hour: DataFrame, folder: str) -> None:
    """Writes hours so that whoever reads those of one cluster reads little else: by cluster and
    time, in row groups of bounded size."""
    partitions = int(by_hour.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    ordered = by_hour.repartitionByRange(
        -(-partitions // PARTITIONS_A_FILE), *HOURS_ORDER
    ).sortWithinPartitions(*HOURS_ORDER)
    ordered.write.options(
        **{
            "parquet.block.row.count.limit": ROWS_A_GROUP,
            # Readers compare it, since they read parts of a file alone.
            "parquet.page.write-checksum.enabled": True,
        }
    ).parquet(folder)


def _read_table(spark: SparkSession, schema: StructType, folder: str) -> DataFrame:
    return spark.read.schema(schema).parquet(literal_path(folder))


def _contents_of(tables: Mapping[str, DataFrame]) -> dict[str, TableContent]:
    rows = content_sums(tables).collect()
    return {name: table_content(row for row in rows if row["table"] == name) for name in tables}


def _window_check(counts: Counts) -> Check:
    return Check(
        "windows_within_an_hour",
        counts.misplaced == 0,
        f"{counts.misplaced} of {counts.distinct} distinct rows are not within one hour",
    )


def _read_checks(extracted: Extract, counts: Counts) -> list[Check]:
    """Checks that deduplication neither lost nor added rows and quantities."""
    accounted = counts.distinct + counts.duplicates + counts.superseded + counts.conflicting_rows
    return [
        equal_check(
            "rows_accounted_for",
            "rows in the files, and distinct, duplicate, superseded and conflicting rows",
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
    """Checks that the folder holds what was computed, and that days are the sums of hours.

    The parameters are the keys of the tables in `roll_up_usage`.
    """
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
    return main(NAME, roll_up_usage, STAGES, parse_arguments(parser, argv))


if __name__ == "__main__":
    sys.exit(run_job())

"""Compares usage with the log and with counters: `python -m spark_usage.jobs.reconcile`.

Ingress is compared by partition with the bytes that the log holds (`--log`, see
`spark_usage.log_manifest`), and egress row by row with the counters that brokers wrote beside it.
Differences are findings in `report.json`; the job ends well however many there are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from spark_usage.checks import Check, content_checks
from spark_usage.errors import IncompleteRows
from spark_usage.extract import with_sound_rows
from spark_usage.jobs.runner import (
    arguments_of,
    finish_run,
    load_run,
    main,
    parse_arguments,
    size_shuffles,
)
from spark_usage.log_manifest import LogManifest, read_log
from spark_usage.progress import Progress
from spark_usage.schemas import DAY_MS, QUANTITY
from spark_usage.storage import Storage
from spark_usage.transforms.deduplicate import (
    deduplicate_rows,
    deduplicate_rows_in_doubt,
    disputed_clusters,
)
from spark_usage.transforms.reconciliation import (
    CLUSTER_FIGURES,
    PARTITION,
    SERIES,
    STEP,
    compared_ingress,
    egress_differences,
    egress_steps,
    ingress_by_cluster,
    logged_bytes,
    metered_ingress,
)
from spark_usage.transforms.versions import is_of_block, is_of_file, mark_superseded

VERSION = 1
NAME = "reconcile"
STAGES = 7

# The number of findings that are listed for ingress and for egress; all are counted.
FINDINGS_MAX = 100


def reconcile_usage(spark: SparkSession, arguments: argparse.Namespace, progress: Progress) -> None:
    """The job: reads the inputs, compares both sides, and writes the report."""
    storage = Storage(spark)
    run = load_run(storage, arguments)
    log = read_log(spark, arguments.log)
    storage.make_folder(arguments.output)
    size_shuffles(spark, run)
    extracted, (distinct, counts) = with_sound_rows(spark, run, progress, _distinct_rows)
    with progress.stage("compare ingress with the log"):
        ingress = _compare_ingress(distinct, log)
    with progress.stage("compare egress with its counters"):
        egress = _compare_egress(distinct)
    with progress.stage("sum the day up"):
        totals = _day_totals(distinct, run.day_start_ms)
    distinct.unpersist()
    checks = [
        *content_checks(extracted.content),
        _finding_check("ingress_as_logged", "partitions", ingress),
        _finding_check("egress_as_counted", "rows", egress),
    ]
    with progress.stage("report"):
        report = {
            "version": VERSION,
            "job": NAME,
            "run_id": run.run_id,
            "day": run.day.isoformat(),
            "since_ms": log.since_ms,
            "until_ms": log.until_ms,
            "rows_read": extracted.content.row_count,
            "rows_distinct": counts["agreeing"],
            "duplicates": counts["copies"] - counts["agreeing"],
            "conflicts": counts["conflicts"],
            "damaged_inputs": [asdict(damage) for damage in extracted.damaged],
            "day_totals": totals,
            "ingress": ingress,
            "egress": egress,
            "checks": [asdict(check) for check in checks],
        }
        finish_run(storage, arguments.output, report)


def _distinct_rows(rows: DataFrame) -> tuple[DataFrame, Row]:
    """The distinct rows, persisted, and their counts. Raises `IncompleteRows`."""
    distinct = deduplicate_rows(rows).persist(StorageLevel.DISK_ONLY)
    try:
        if not disputed_clusters(distinct).isEmpty():
            distinct.unpersist()
            distinct = deduplicate_rows_in_doubt(rows).persist(StorageLevel.DISK_ONLY)
        (counts,) = distinct.agg(
            sf.count_if("agrees").alias("agreeing"),
            sf.coalesce(sf.sum(sf.when(sf.col("agrees"), sf.col("copies"))), sf.lit(0)).alias(
                "copies"
            ),
            sf.count_if(~sf.col("agrees")).alias("conflicts"),
            sf.count_if("incomplete").alias("incomplete"),
            sf.count_if(is_of_block()).alias("of_blocks"),
            sf.count_if(is_of_file()).alias("of_files"),
        ).collect()
        if counts["incomplete"]:
            raise IncompleteRows
    except Exception:
        distinct.unpersist()
        raise
    if counts["of_blocks"] and counts["of_files"]:
        return mark_superseded(distinct).filter(~sf.col("superseded")), counts
    return distinct, counts


def _day_totals(distinct: DataFrame, day_start_ms: int) -> dict[str, str]:
    """Quantities of the day by meter. A roll-up of the same files must have the same."""
    start = sf.col("window_start_ms")
    of_day = (start >= day_start_ms) & (start < day_start_ms + DAY_MS)
    rows = distinct.filter(sf.col("agrees") & of_day).groupBy("meter")
    sums = rows.agg(sf.sum(sf.col("quantity").cast(QUANTITY)).alias("total")).collect()
    return {row["meter"]: str(int(row["total"])) for row in sorted(sums)}


def _compare_ingress(distinct: DataFrame, log: LogManifest) -> dict[str, Any]:
    """The report's part on ingress: totals, findings by partition, and figures by cluster."""
    metered = metered_ingress(distinct, log.since_ms, log.until_ms)
    compared = compared_ingress(metered, logged_bytes(log.partitions), log.unknown).persist()
    try:
        clusters = [row.asDict() for row in ingress_by_cluster(compared).collect()]
        findings = _findings(compared.filter(sf.col("kind").isNotNull()), PARTITION)
    finally:
        compared.unpersist()
    totals = {name: str(sum(int(row[name]) for row in clusters)) for name in CLUSTER_FIGURES[:4]}
    return {
        **totals,
        "partitions": sum(row["partitions"] for row in clusters),
        **findings,
        "clusters": [
            {name: _plain_value(value) for name, value in row.items()}
            for row in sorted(clusters, key=lambda row: str(row["cluster_id"]))
        ],
    }


def _compare_egress(distinct: DataFrame) -> dict[str, Any]:
    """The report's part on egress: the total, and rows that differ from their counter."""
    steps = egress_steps(distinct)
    return {
        **_figures(steps, "quantity"),
        "rows": steps.count(),
        "series": steps.select(*SERIES).distinct().count(),
        **_findings(egress_differences(steps), (*SERIES, *STEP)),
    }


def _figures(frame: DataFrame, *columns: str) -> dict[str, str]:
    """Sums of columns as text, because many readers of JSON round numbers above 2^53."""
    sums = [sf.sum(sf.col(column).cast(QUANTITY)).alias(column) for column in columns]
    (row,) = frame.agg(*sums).collect()
    return {column: str(int(row[column] or 0)) for column in columns}


def _findings(differences: DataFrame, order: Sequence[str]) -> dict[str, Any]:
    """The number of differences by kind, and the first `FINDINGS_MAX` of them in `order`."""
    kinds = differences.groupBy("kind").count().collect()
    first = differences.orderBy(*order).limit(FINDINGS_MAX).collect() if kinds else []
    return {
        "differing": {row["kind"]: row["count"] for row in sorted(kinds)},
        "findings": [
            {name: _plain_value(value) for name, value in row.asDict().items() if name != "known"}
            for row in first
        ],
    }


def _plain_value(value: str | int | Decimal | None) -> str | int | None:
    return str(int(value)) if isinstance(value, Decimal) else value


def _finding_check(name: str, what: str, compared: dict[str, Any]) -> Check:
    differing = sum(compared["differing"].values())
    return Check(name, differing == 0, f"{differing} {what} differ")


def run_job(argv: Sequence[str] | None = None) -> int:
    """Parses the command line and runs the job; returns the exit status."""
    parser = arguments_of(NAME, "Compares usage with the log and with the brokers' counters.")
    parser.add_argument("--log", required=True, help="path or URI of what the log holds, as JSON")
    return main(NAME, reconcile_usage, STAGES, parse_arguments(parser, argv))


if __name__ == "__main__":
    sys.exit(run_job())

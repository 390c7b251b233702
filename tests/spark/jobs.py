"""Spark's jobs as the control plane calls them, in the tests' session: none starts a JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from metering.models import Reconciliation, RollupRun
from metering.services.run_folders import LOG, MANIFEST, OUTPUT, RunFolder
from metering.services.spark import CompactJob, Job, ReconcileJob, Say, read_report
from spark_usage.jobs import compact_files, reconcile, rollup
from spark_usage.progress import Progress
from tests.spark.runs import arguments_for


def rollup_in(spark: SparkSession) -> Job:
    """What `run_spark` does in a process of its own."""

    def run(row: RollupRun, folder: RunFolder, say: Say) -> dict[str, Any]:
        say("in the session of the tests")
        manifest, output = (folder.path(name) for name in (MANIFEST, OUTPUT))
        arguments = arguments_for(manifest, output, row.pk, row.day)
        rollup.roll_up_usage(spark, arguments, Progress(spark.sparkContext, rollup.STAGES))
        return read_report(folder)

    return run


def reconcile_in(spark: SparkSession) -> ReconcileJob:
    """What `run_reconcile` does in a process of its own."""

    def run(row: Reconciliation, folder: RunFolder, say: Say) -> dict[str, Any]:
        say("in the session of the tests")
        manifest, log, output = (folder.path(name) for name in (MANIFEST, LOG, OUTPUT))
        arguments = arguments_for(manifest, output, row.pk, row.day, log)
        progress = Progress(spark.sparkContext, reconcile.STAGES)
        reconcile.reconcile_usage(spark, arguments, progress)
        return read_report(folder)

    return run


def compact_in(spark: SparkSession) -> CompactJob:
    """What `run_compact` does in a process of its own."""

    def run(folder: RunFolder, say: Say) -> dict[str, Any]:
        say("in the session of the tests")
        manifest, output = (folder.path(name) for name in (MANIFEST, OUTPUT))
        arguments = arguments_for(manifest, output, folder.run_id, folder.day)
        progress = Progress(spark.sparkContext, compact_files.STAGES)
        compact_files.compact_usage(spark, arguments, progress)
        return read_report(folder)

    return run

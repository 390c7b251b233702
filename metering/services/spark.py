"""Runs a Spark job as a child process, passes on its progress, and reads its report."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from console.base.common.conf import config
from metering.errors import RollupFailed
from metering.models import Reconciliation, RollupRun
from metering.services.run_folders import LOG, MANIFEST, OUTPUT, RunFolder
from metering.stores import hadoop_settings

ROOT = Path(__file__).resolve().parents[2]
# Last lines of its output that an error shows.
TAIL_LINES = 20
# How long an interrupted job may take to end by itself before it is killed.
STOP_S = 20.0

Say = Callable[[str], None]
# (run, its folder with the manifest, progress) → the job's report. The job makes the output.
Job = Callable[[RollupRun, RunFolder, Say], dict[str, Any]]
# The same for a comparison, whose folder has the log's manifest too.
ReconcileJob = Callable[[Reconciliation, RunFolder, Say], dict[str, Any]]
# The same for files that are joined: nothing but the folder stands for the run.
CompactJob = Callable[[RunFolder, Say], dict[str, Any]]


def run_spark(run: RollupRun, folder: RunFolder, say: Say) -> dict[str, Any]:
    """Rolls a run's day up by `spark_usage.jobs.rollup`; returns its report.

    Raises `RollupFailed`. An interrupt ends the job first, and is then raised.
    """
    return _run_job("rollup", folder, say)


def run_reconcile(reconciliation: Reconciliation, folder: RunFolder, say: Say) -> dict[str, Any]:
    """Compares a day's usage with the log by `spark_usage.jobs.reconcile`; returns its report.

    Raises `RollupFailed`. An interrupt ends the job first, and is then raised.
    """
    return _run_job("reconcile", folder, say, "--log", folder.path(LOG))


def run_compact(folder: RunFolder, say: Say) -> dict[str, Any]:
    """Joins the files of a manifest by `spark_usage.jobs.compact_files`; returns its report.

    Raises `RollupFailed`. An interrupt ends the job first, and is then raised.
    """
    return _run_job("compact_files", folder, say)


def _run_job(job: str, folder: RunFolder, say: Say, *more: str) -> dict[str, Any]:
    usage = config().usage
    command = [
        *(sys.executable, "-m", f"spark_usage.jobs.{job}"),
        *("--day", folder.day.isoformat(), "--run-id", folder.run_id),
        *("--manifest", folder.path(MANIFEST), "--output", folder.path(OUTPUT)),
        *("--master", usage.spark_master, "--rows", str(_rows_of(folder)), *more),
        *(f"--conf={setting}" for setting in usage.spark_settings),
    ]
    if usage.spark_jars:
        command += ["--jars", usage.spark_jars]
    stores = hadoop_settings(usage.location) | hadoop_settings(usage.rollups)
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    # In a session of its own, so that Ctrl-C in a terminal does not reach it directly: this process
    # ends it, once.
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "SPARK_USAGE_SETTINGS": json.dumps(stores)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            for line in process.stderr or ():
                tail.append(line.rstrip())
                say(line.rstrip())
            status = process.wait()
        except BaseException:
            _stop_job(process)
            raise
    if status:
        message = f"the job ended with status {status}:\n" + "\n".join(tail)
        raise RollupFailed(message)
    return read_report(folder)


def _rows_of(folder: RunFolder) -> int:
    """How many rows the inputs of a run have, by its manifest."""
    manifest = json.loads(folder.read(MANIFEST))
    return sum(entry["rows"] for entry in manifest["inputs"])


def read_report(folder: RunFolder) -> dict[str, Any]:
    """The report of a job that succeeded. Raises `RollupFailed` where it is missing or changed."""
    try:
        success = json.loads(folder.read(f"{OUTPUT}/_SUCCESS.json"))
        data = folder.read(f"{OUTPUT}/report.json")
        if hashlib.sha256(data).hexdigest() != success["report_sha256"]:
            message = "the job's report is not the one that it finished with"
            raise RollupFailed(message)
        report: dict[str, Any] = json.loads(data)
    except (OSError, KeyError, ValueError) as error:
        message = f"the job left no report: {error}"
        raise RollupFailed(message) from error
    return report


def _stop_job(process: subprocess.Popen[str]) -> None:
    """Ends the job, and after `STOP_S` kills it with all processes that it started."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

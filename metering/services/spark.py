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
from metering.stores import hadoop_environment, hadoop_settings

ROOT = Path(__file__).resolve().parents[2]
# Last lines of its output that an error shows.
TAIL_LINES = 20
# How long an interrupted job may take to end by itself before it is killed.
STOP_S = 20.0

Say = Callable[[str], None]
# (run, its manifest, the folder to make, progress) → the job's report.
Job = Callable[[RollupRun, Path, Path, Say], dict[str, Any]]
# (comparison, its manifest, the log's manifest, the folder to make, progress) → the job's report.
ReconcileJob = Callable[[Reconciliation, Path, Path, Path, Say], dict[str, Any]]


def run_spark(run: RollupRun, manifest: Path, output: Path, say: Say) -> dict[str, Any]:
    """Rolls a run's day up by `spark_usage.jobs.rollup`; returns its report.

    Raises `RollupFailed`. An interrupt ends the job first, and is then raised.
    """
    return _run_job("rollup", run, manifest, output, say)


def run_reconcile(
    reconciliation: Reconciliation, manifest: Path, log: Path, output: Path, say: Say
) -> dict[str, Any]:
    """Compares a day's usage with the log by `spark_usage.jobs.reconcile`; returns its report.

    Raises `RollupFailed`. An interrupt ends the job first, and is then raised.
    """
    return _run_job("reconcile", reconciliation, manifest, output, say, "--log", str(log))


def _run_job(
    job: str, run: RollupRun | Reconciliation, manifest: Path, output: Path, say: Say, *more: str
) -> dict[str, Any]:
    usage = config().usage
    command = [
        *(sys.executable, "-m", f"spark_usage.jobs.{job}"),
        *("--day", run.day.isoformat(), "--run-id", run.pk),
        *("--manifest", str(manifest), "--output", str(output)),
        *("--master", usage.spark_master, *more),
        *(f"--conf={name}={setting}" for name, setting in hadoop_settings(usage.location).items()),
    ]
    if usage.spark_jars:
        command += ["--jars", usage.spark_jars]
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    # In a session of its own, so that Ctrl-C in a terminal does not reach it directly: this process
    # ends it, once.
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **hadoop_environment(usage.location)},
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
    return read_report(output)


def read_report(output: Path) -> dict[str, Any]:
    """The report of a job that succeeded. Raises `RollupFailed` where it is missing or changed."""
    try:
        success = json.loads((output / "_SUCCESS.json").read_bytes())
        data = (output / "report.json").read_bytes()
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

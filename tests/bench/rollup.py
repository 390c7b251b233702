"""The nightly roll-up by Spark: rows a second and core of the whole job, from process to process.

The same files are read by the job, by a plain Spark scan and by a plain pyarrow scan, in turn, at
1, 3 and 10 times the rows. `value` is the job's rate at the most rows, `peer` the Spark scan's, so
`ratio` is what deduplicating, summing and checking leave of it. Processes have all cores. CPU time
is that of all processes of a side, the JVM and its start included.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.report import Report, progress, spread
from tests.bench.sides import chosen, rotated, work_folder
from tests.bench.usage_days import DAY, RUN_ID, make_day
from tests.peer.jars import ROOT

SIDES = ("rollup", "spark_scan", "pyarrow_scan")
ROUNDS = 3
# Rows of a day at 1x, and the multiples of it.
ROWS = 1_000_000
SCALES = (1, 3, 10)

PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Day:
    """One day's files."""

    scale: int
    rows: int
    size_bytes: int
    run: Path


@dataclass(frozen=True)
class Sample:
    """What one process with its children took."""

    wall_seconds: float
    cpu_seconds: float


Samples = dict[tuple[str, int], list[Sample]]


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: each round takes every side over every size of day."""
    rounds = rounds or ROUNDS
    names = chosen(SIDES, only)
    # The harness of all benches keeps to the generator's core; what is measured here does not.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    adopt_orphans()
    days = [_make_day(scale) for scale in SCALES]
    samples: Samples = defaultdict(list)
    contents: dict[int, set[str]] = defaultdict(set)
    for number in range(rounds):
        for day in days:
            for name in rotated(names, number):
                sample = _measured(name, day, contents[day.scale])
                samples[name, day.scale].append(sample)
                progress(
                    f"round {number + 1} of {rounds}, {day.rows} rows: {name}: "
                    f"{sample.wall_seconds:.1f} s, {sample.cpu_seconds:.1f} CPU s"
                )
    if any(len(hashes) > 1 for hashes in contents.values()):
        message = f"the same files gave different results: {contents}"
        raise RuntimeError(message)
    return _report(rounds, names, days, samples)


def adopt_orphans() -> None:
    """Makes this process adopt orphans: a JVM outlives its Python, and its CPU time counts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _make_day(scale: int) -> Day:
    path = make_day(work_folder() / f"usage-{scale}x", ROWS * scale)
    inputs = json.loads(path.read_text())["inputs"]
    return Day(
        scale=scale,
        rows=sum(entry["rows"] for entry in inputs),
        size_bytes=sum(entry["size_bytes"] for entry in inputs),
        run=path,
    )


def _measured(name: str, day: Day, contents: set[str]) -> Sample:
    output = day.run.parent / "output"
    shutil.rmtree(output, ignore_errors=True)
    if name == "rollup":
        command = [
            *("-m", "spark_usage.jobs.rollup", "--day", DAY.isoformat(), "--run-id", RUN_ID),
            *("--manifest", str(day.run), "--output", str(output), "--rows", str(day.rows)),
        ]
    else:
        command = ["-m", "tests.bench.scan", name.removesuffix("_scan"), str(day.run)]
    sample = run_timed([sys.executable, *command])
    if name == "rollup":
        contents.add(_check_output(output, day))
    return sample


def run_timed(command: list[str]) -> Sample:
    """Runs a command and all that it leaves behind to their end."""
    scratch = work_folder() / "scratch"
    scratch.mkdir(exist_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_DIRS": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, said = process.communicate()
    wall = time.monotonic() - began
    if process.returncode:
        message = f"{command} ended with {process.returncode}:\n{said}"
        raise RuntimeError(message)
    _wait_for_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Sample(wall, cpu)


def _wait_for_orphans() -> None:
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def _check_output(output: Path, day: Day) -> str:
    """Checks a run's report; returns the hash of its content."""
    report = json.loads((output / "report.json").read_text())
    failed = [check for check in report["checks"] if not check["passed"]]
    wrong = (
        failed
        or report["rows_read"] != day.rows
        or report["conflicts"]
        or report["damaged_inputs"]
        or not report["duplicates"]
    )
    if wrong:
        message = f"the roll-up's report is not that of these files: {report}"
        raise RuntimeError(message)
    return str(report["content_sha256"])


def _report(rounds: int, names: Sequence[str], days: Sequence[Day], samples: Samples) -> Report:
    cores = len(os.sched_getaffinity(0))
    figures = {
        name: {f"{day.scale}x": _figures(day, samples[name, day.scale], cores) for day in days}
        for name in names
    }

    def largest(name: str) -> float | None:
        if name not in figures:
            return None
        rate: float = figures[name][f"{days[-1].scale}x"]["rows_per_second_and_core"]["median"]
        return rate

    return Report(
        bench="rollup",
        value=largest("rollup"),
        unit="rows/s/core",
        peer=largest("spark_scan"),
        details={
            "rounds": rounds,
            "cores": cores,
            "load_average": round(os.getloadavg()[0], 2),
            "rows": {f"{day.scale}x": day.rows for day in days},
            "file_bytes": {f"{day.scale}x": day.size_bytes for day in days},
            "sides": figures,
            "growth": {name: _growth(name, days, samples) for name in names},
        },
    )


def _figures(day: Day, samples: Sequence[Sample], cores: int) -> dict[str, Any]:
    return {
        "rows_per_second_and_core": spread(
            [day.rows / sample.wall_seconds / cores for sample in samples], 0
        ),
        "rows_per_cpu_second": spread([day.rows / sample.cpu_seconds for sample in samples], 0),
        "wall_seconds": spread([sample.wall_seconds for sample in samples]),
        "cpu_seconds": spread([sample.cpu_seconds for sample in samples]),
    }


def _growth(name: str, days: Sequence[Day], samples: Samples) -> dict[str, float]:
    """CPU seconds for a million rows more, from each size to the next: equal if cost is linear."""
    cpu = [
        statistics.median(sample.cpu_seconds for sample in samples[name, day.scale]) for day in days
    ]
    return {
        f"{days[i].scale}x to {days[i + 1].scale}x": round(
            1e6 * (cpu[i + 1] - cpu[i]) / (days[i + 1].rows - days[i].rows), 2
        )
        for i in range(len(days) - 1)
    }

"""A day on a cluster of Spark: a master and two workers as processes, all files in an S3 server.

One row in twenty is there twice, one in a hundred once more, and a tenth of these differ. The day
is rolled up undisturbed, while a worker is killed, after the driver was killed, and again; then by
`local[*]` and by plain Python. All must come to one content hash and the same counts, or the bench
fails. `value` is the rate of the undisturbed run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metering.stores import hadoop_root, hadoop_settings, open_usage_store
from spark_usage.jars import POM as S3A_POM
from tests.bench.report import Report, progress
from tests.bench.rollup import Sample, adopt_orphans, run_timed
from tests.bench.sides import work_folder
from tests.bench.usage_days import CLUSTERS, DAY, RUN_ID, make_day
from tests.peer.jars import ROOT, fetch_jars
from tests.s3 import running_s3
from tests.spark import oracle
from tests.spark.cluster import SparkCluster, running_cluster

ROWS = 10_000_000
# Rows that plain Python holds at once: each takes about a kilobyte.
ROWS_AT_ONCE = 500_000
EXECUTOR = ("spark.executor.memory=800m", "spark.driver.host=127.0.0.1")
COUNTS = ("rows_read", "rows_distinct", "duplicates", "conflicts", "content_sha256")

Said = Callable[[str, subprocess.Popen[str]], None]


@dataclass(frozen=True)
class Bucket:
    """Where the day's files and the runs are."""

    location: str

    def start(self, cluster: SparkCluster, name: str) -> subprocess.Popen[str]:
        """Starts the job on the cluster; its output is a folder of the bucket."""
        root = hadoop_root(self.location)
        command = [
            *(sys.executable, "-m", "spark_usage.jobs.rollup"),
            *("--day", DAY.isoformat(), "--run-id", RUN_ID, "--manifest", f"{root}/run.json"),
            *("--output", f"{root}/{name}", "--master", cluster.url),
            *("--jars", str(fetch_jars(S3A_POM)), *(f"--conf={setting}" for setting in EXECUTOR)),
        ]
        settings = json.dumps(hadoop_settings(self.location))
        return _start(command, {"SPARK_USAGE_SETTINGS": settings})

    def report(self, name: str) -> dict[str, Any]:
        """The report of a run that succeeded."""
        store = open_usage_store(self.location)
        store.get(f"{name}/_SUCCESS.json")
        report: dict[str, Any] = json.loads(store.get(f"{name}/report.json"))
        return report


def run(rounds: int | None = None, only: object = None) -> Report:
    """Makes every run of the day once. `ROWS` in the environment says how many rows it has."""
    del rounds, only
    rows = int(os.environ.get("ROWS", str(ROWS)))
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    folder = work_folder() / f"usage-cluster-{rows}"
    manifest = make_day(folder, rows, contradicted=True)
    reports: dict[str, dict[str, Any]] = {}
    seconds: dict[str, float] = {}
    with ExitStack() as stack:
        place = folder / "cluster"
        shutil.rmtree(place, ignore_errors=True)
        (place / "s3").mkdir(parents=True)
        server = stack.enter_context(running_s3(place / "s3"))
        cluster = stack.enter_context(running_cluster(place))
        bucket = Bucket(server.make_bucket())
        _upload(manifest, bucket)

        def take(name: str, said: Said = lambda line, process: None) -> None:
            began = time.monotonic()
            ended = _follow(bucket.start(cluster, name), said)
            seconds[name] = round(time.monotonic() - began, 1)
            progress(f"{name}: {seconds[name]} s, status {ended}")
            if ended == 0:
                reports[name] = bucket.report(name)

        def kill_worker(line: str, process: subprocess.Popen[str]) -> None:
            if line.startswith("stage 3") and "tasks" in line and "worker-1" in cluster.processes:
                cluster.kill("worker-1")
                cluster.start_worker("worker-3")

        def kill_driver(line: str, process: subprocess.Popen[str]) -> None:
            if line.startswith("stage 4"):
                process.send_signal(signal.SIGKILL)

        take("undisturbed")
        take("killed_worker", kill_worker)
        if "worker-1" in cluster.processes:
            message = "no worker was killed: the day is too small"
            raise RuntimeError(message)
        take("killed_driver", kill_driver)
        if "killed_driver" in reports:
            message = "the driver was killed, and its run counts"
            raise RuntimeError(message)
        take("again")
    reports["local"], local = _local(manifest)
    seconds["local"] = round(local.wall_seconds, 1)
    began = time.monotonic()
    reports["oracle"] = _on_paper(manifest)
    seconds["oracle"] = round(time.monotonic() - began, 1)
    results = {tuple(report[name] for name in COUNTS) for report in reports.values()}
    if len(results) != 1:
        message = f"the same files gave different results: {results}"
        raise RuntimeError(message)
    counts = {name: reports["oracle"][name] for name in COUNTS}
    return Report(
        bench="rollup_cluster",
        value=round(counts["rows_read"] / seconds["undisturbed"]),
        unit="rows/s",
        peer=None,
        details={
            "seconds": seconds,
            "cpu_seconds_of_local": round(local.cpu_seconds, 1),
            "runs": sorted(reports),
            **counts,
        },
    )


def _start(command: list[str], more: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _follow(process: subprocess.Popen[str], said: Said) -> int:
    """Passes on what a job says; returns how it ended. Raises `RuntimeError` where it failed."""
    lines = []
    with process:
        try:
            for line in process.stderr or ():
                lines.append(line)
                said(line, process)
        except BaseException:
            process.terminate()
            raise
    if process.returncode not in {0, -signal.SIGKILL}:
        message = f"the job ended with {process.returncode}:\n{''.join(lines[-20:])}"
        raise RuntimeError(message)
    return process.returncode


def _upload(manifest: Path, bucket: Bucket) -> None:
    plain = json.loads(manifest.read_text())
    store = open_usage_store(bucket.location)
    for entry in plain["inputs"]:
        store.put_new(entry["key"], Path(plain["usage_root"], entry["key"]).read_bytes())
    remote = plain | {"usage_root": hadoop_root(bucket.location)}
    store.put_new("run.json", json.dumps(remote).encode())
    progress(f"{len(plain['inputs'])} usage files are in the bucket")


def _local(manifest: Path) -> tuple[dict[str, Any], Sample]:
    output = manifest.parent / "output"
    shutil.rmtree(output, ignore_errors=True)
    command = [
        *(sys.executable, "-m", "spark_usage.jobs.rollup"),
        *("--day", DAY.isoformat(), "--run-id", RUN_ID),
        *("--manifest", str(manifest), "--output", str(output), "--master", "local[*]"),
    ]
    adopt_orphans()
    sample = run_timed(command)
    report: dict[str, Any] = json.loads((output / "report.json").read_text())
    progress(f"local[*]: {sample.wall_seconds:.1f} s, {sample.cpu_seconds:.1f} CPU s")
    return report, sample


def _on_paper(manifest: Path) -> dict[str, Any]:
    """What the oracle comes to, some clusters at a time: no row of one touches another's."""
    rows = sum(entry["rows"] for entry in json.loads(manifest.read_text())["inputs"])
    parts = min(len(CLUSTERS), -(-rows // ROWS_AT_ONCE))
    counts = dict.fromkeys(COUNTS[:-1], 0)
    tables: dict[str, list[oracle.Row]] = {"hours": [], "days": []}
    for part in range(parts):
        result = oracle.roll_up(manifest, frozenset(CLUSTERS[part::parts]))
        for name in counts:
            counts[name] += getattr(result, name)
        tables["hours"] += result.hours
        tables["days"] += result.days
        progress(f"plain Python: {part + 1} of {parts} parts")
    return {**counts, "content_sha256": oracle.content_sha256(tables)}

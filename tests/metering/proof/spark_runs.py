"""The real roll-up job as a process: run, killed half-way, run again; and what it billed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.metering.proof.usage_folder import UsageFolder
from tests.metering.proof.verdict import Billed
from tests.spark.oracle import roll_up

ROOT = Path(__file__).parents[3]
# A limit that no passing test reaches.
LIMIT_SECONDS = 900.0


@dataclass(frozen=True)
class Run:
    """A run that ended well."""

    folder: Path
    manifest: Path
    report: dict[str, Any]

    @property
    def content(self) -> str:
        """What it says, whatever the order: two runs over the same usage agree in it."""
        return str(self.report["content_sha256"])

    def agrees_with_oracle(self) -> bool:
        """Whether the oracle has the same result from the same files."""
        return roll_up(self.manifest).content_sha256 == self.content

    def quantities(self, *, billed: bool) -> Counter[tuple[str, str, str, str]]:
        """What is billed of its day, or what is not, by (cluster, meter, topic id, principal)."""
        sums: Counter[tuple[str, str, str, str]] = Counter()
        for row in pq.read_table(self.folder / "days").to_pylist():
            if row["billed"] is billed:
                whose = (row["cluster_id"], row["meter"], row["topic_id"], row["principal"])
                sums[whose] += int(row["quantity"])
        return sums


class RollUp:
    """Runs of `spark_usage.jobs.rollup` over a usage folder, each in a folder of its own."""

    def __init__(self, usage: UsageFolder, folder: Path, settings: tuple[str, ...] = ()) -> None:
        self.usage, self.folder, self.settings = usage, folder, settings
        folder.mkdir(parents=True, exist_ok=True)
        self._runs = 0

    def run(self, day: str) -> Run:
        """Runs it to its end. Raises `RuntimeError` where it fails."""
        process, output, log = self._start(day)
        if process.wait(LIMIT_SECONDS) != 0:
            message = f"the roll-up ended with {process.returncode}:\n{log.read_text()[-4000:]}"
            raise RuntimeError(message)
        success = output / "_SUCCESS.json"
        if not success.exists():
            message = f"{success} is missing"
            raise RuntimeError(message)
        report = json.loads((output / "report.json").read_bytes())
        failed = [check for check in report["checks"] if not check["passed"]]
        if failed:
            message = f"checks failed: {failed}"
            raise RuntimeError(message)
        return Run(output, self.folder / f"{report['run_id']}.json", report)

    def kill_half_way(self, day: str) -> None:
        """Kills it, and its JVM, once it began to write. Raises `RuntimeError` if it was faster."""
        process, output, log = self._start(day)
        clock = threading.Event()
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (output / "hours").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                message = f"the roll-up wrote nothing:\n{log.read_text()[-4000:]}"
                raise RuntimeError(message)
            clock.wait(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if (output / "_SUCCESS.json").exists():
            message = "the roll-up was over before it could be killed"
            raise RuntimeError(message)

    def _start(self, day: str) -> tuple[subprocess.Popen[bytes], Path, Path]:
        self._runs += 1
        run_id = f"run_{day}_{self._runs}"
        manifest = self.folder / f"{run_id}.json"
        manifest.write_text(json.dumps(self.usage.run_manifest(run_id, day)))
        output = self.folder / f"run_id={run_id}"
        log = self.folder / f"{run_id}.log"
        command = [sys.executable, "-m", "spark_usage.jobs.rollup", "--day", day]
        command += ["--run-id", run_id, "--manifest", str(manifest), "--output", str(output)]
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command, *self.settings],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                # A group of its own, so that its JVM is killed with it.
                start_new_session=True,
            )
        return process, output, log


def sum_runs(runs: list[Run], *, billed: bool = True) -> Billed:
    """Quantities of several days: what is billed, or what is not."""
    sums: Counter[tuple[str, str, str, str]] = Counter()
    for run in runs:
        sums.update(run.quantities(billed=billed))
    return sums

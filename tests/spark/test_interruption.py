"""A job that ends half-way leaves nothing that counts, and the next run is not disturbed by it."""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest

from spark_usage.errors import JobError
from spark_usage.jobs import runner
from tests.spark.runs import JAVA_OPTIONS
from tests.spark.usage_files import DAY, ingress


def start(manifest, output, run_id="run_1"):
    """Starts the roll-up as the control plane does."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "spark_usage.jobs.rollup"),
            *("--day", DAY.isoformat(), "--run-id", run_id),
            *("--manifest", str(manifest), "--output", str(output)),
            *("--master", "local[2]", "--driver-memory", "512m"),
        ],
        stderr=subprocess.PIPE,
        env={**os.environ, "JAVA_TOOL_OPTIONS": JAVA_OPTIONS},
        text=True,
    )


@pytest.mark.parametrize(
    ("signal_number", "status"),
    [
        (signal.SIGTERM, 128 + signal.SIGTERM),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, marks=pytest.mark.full),
    ],
)
def test_a_job_that_is_ended_leaves_nothing_that_counts(folder, signal_number, status):
    manifest = folder.run([folder.add([ingress(block, 1)]) for block in range(20)])
    output = folder.root / "run_id=run_1"
    with start(manifest, output) as job:
        said = next(line for line in job.stderr if line.startswith("stage 3 of 6"))
        job.send_signal(signal_number)
        # Its JVM has the same pipe: reading to the end waits for both.
        said += job.stderr.read()
    assert job.returncode == status
    assert "Traceback" not in said
    assert output.is_dir()
    assert not (output / "_SUCCESS.json").exists()


@pytest.mark.full
def test_a_job_by_command_line_ends_with_its_report(folder):
    manifest = folder.run([folder.add([ingress(1, 1)])])
    output = folder.root / "run_id=run_1"
    with start(manifest, output) as job:
        said = job.stderr.read()
    assert job.returncode == 0, said
    stages = [line.split(":")[0] for line in said.splitlines() if line.startswith("stage")]
    assert list(dict.fromkeys(stages)) == [f"stage {n} of 6" for n in range(1, 7)]
    report = (output / "report.json").read_bytes()
    assert json.loads((output / "_SUCCESS.json").read_text()) == {
        "version": 1,
        "run_id": "run_1",
        "report_sha256": hashlib.sha256(report).hexdigest(),
    }


class FakeSession:
    """As much of a session as the runner itself touches."""

    stopped = False

    def __init__(self):
        self.sparkContext = self

    def stop(self):
        self.stopped = True


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (None, 0, ""),
        (JobError("not like this"), 2, "rollup: not like this\n"),
        (RuntimeError("broken"), 1, "RuntimeError: broken\n"),
    ],
)
def test_exit_status_says_how_a_job_ended(monkeypatch, capsys, error, status, message):
    session = FakeSession()
    monkeypatch.setattr(runner, "open_session", lambda *_, **__: session)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def job(*_):
        if error:
            raise error

    arguments = argparse.Namespace(master=None, driver_memory="1g", rows=None, jars="", conf=[])
    assert runner.main("rollup", job, 1, arguments) == status
    assert capsys.readouterr().err.endswith(message)
    assert session.stopped


@pytest.mark.parametrize(
    ("options", "compiles_little"),
    [((), False), (("--rows", "3000000"), True), (("--rows", "3000001"), False)],
)
def test_a_run_of_few_rows_compiles_little(monkeypatch, options, compiles_little):
    opened = {}
    monkeypatch.setattr(
        runner, "open_session", lambda *_, **given: opened.update(given) or FakeSession()
    )
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    required = ("--day", DAY.isoformat(), "--run-id", "r", "--manifest", "m", "--output", "o")
    arguments = runner.parse_arguments(runner.arguments_of("rollup", ""), [*required, *options])
    assert runner.main("rollup", lambda *_: None, 1, arguments) == 0
    assert ("TieredStopAtLevel" in opened["java_options"]) is compiles_little

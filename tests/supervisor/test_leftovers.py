"""What a killed run left behind is ended, and no process that only resembles it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.programs.supervisor.leftovers import Record, end_leftovers
from console.programs.supervisor.processes import identify_process, working_in

from .run import wait_until

PAUSE = "import signal; signal.pause()"
# The child prints its own process id once it runs: just after its start /proc shows no environment
# of it yet.
CHILD = f"import os; print(os.getpid(), flush=True); {PAUSE}"
PARENT = f"""
import subprocess, sys, signal
subprocess.Popen([sys.executable, '-c', {CHILD!r}])
signal.pause()
"""


@pytest.fixture
def start_process():
    """Returns a function that starts a process in a session of its own, as the supervisor does."""
    started = []

    def start(program=PAUSE, mark="this"):
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            start_new_session=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "FRESHET_RUN": mark},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def record(tmp_path):
    return tmp_path / "run.json"


def end_recorded(record, **options):
    return asyncio.run(end_leftovers(record, **options))


def test_a_recorded_process_is_ended(start_process, record):
    process = start_process()
    Record(record, "this").add("web", process.pid, signal.SIGTERM, members=True)
    assert end_recorded(record) == ["web"]
    assert process.wait(10) == -signal.SIGTERM
    assert not record.exists()


def test_a_process_that_ignores_its_signal_is_killed(start_process, record):
    ignoring = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
    process = start_process(f"{ignoring}; signal.pause()")
    process.stdout.readline()
    Record(record, "this").add("web", process.pid, signal.SIGTERM, members=True)
    assert end_recorded(record, timeout_s=0.2) == ["web"]
    assert process.wait(10) == -signal.SIGKILL


def test_a_number_that_is_used_again_is_left_alone(start_process, record):
    process = start_process(mark="another")
    Record(record, "this").add("web", process.pid, signal.SIGTERM, members=True)
    content = json.loads(record.read_text())
    content["children"][0]["started"] -= 1
    record.write_text(json.dumps(content))
    assert end_recorded(record) == []
    assert identify_process(process.pid) is not None


def test_a_record_of_another_boot_names_nobody(start_process, record):
    process = start_process()
    Record(record, "this").add("web", process.pid, signal.SIGTERM, members=True)
    content = json.loads(record.read_text())
    content["boot"] = "another"
    record.write_text(json.dumps(content))
    assert end_recorded(record) == []
    assert identify_process(process.pid) is not None


def test_a_process_that_outlived_its_recorded_parent_is_ended(start_process, record):
    process = start_process(PARENT)
    orphan = int(process.stdout.readline())
    Record(record, "this").add("worker", process.pid, signal.SIGTERM, members=True)
    process.kill()
    process.wait()
    assert identify_process(orphan) is not None
    assert end_recorded(record) == ["worker"]
    assert identify_process(orphan) is None


def test_the_brokers_of_a_keeper_are_left_alone(start_process, record):
    process = start_process(PARENT)
    broker = int(process.stdout.readline())
    Record(record, "this").add("keeper", process.pid, signal.SIGTERM, members=False)
    assert end_recorded(record) == ["keeper"]
    assert identify_process(broker) is not None
    os.kill(broker, signal.SIGKILL)
    wait_until(lambda: identify_process(broker) is None, "the broker has ended")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"boot": 1}'])
def test_a_record_that_was_cut_short_names_nobody(record, content):
    record.write_text(content)
    assert end_recorded(record) == []
    assert not record.exists()


def test_a_process_is_found_by_its_working_folder(start_process, tmp_path):
    assert working_in(tmp_path, "python") == []
    process = start_process(
        f"import os, signal; os.chdir({str(tmp_path)!r}); print(1, flush=True);signal.pause()"
    )
    process.stdout.readline()
    name = Path(f"/proc/{process.pid}/exe").readlink().name
    assert working_in(tmp_path, name) == [process.pid]
    assert working_in(tmp_path, "postgres") == []

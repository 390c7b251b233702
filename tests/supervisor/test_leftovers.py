"""What a killed run left behind is ended, and nothing that only looks like it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.programs.supervisor.leftovers import Record, end_leftovers
from console.programs.supervisor.processes import identify, working_in

from .run import wait_until

PAUSE = "import signal; signal.pause()"
# The child itself tells its number: for a moment after it begins it has no environment to be seen.
CHILD = f"import os; print(os.getpid(), flush=True); {PAUSE}"
PARENT = f"""
import subprocess, sys, signal
subprocess.Popen([sys.executable, '-c', {CHILD!r}])
signal.pause()
"""


@pytest.fixture
def start():
    """Starts a process in a session of its own, as the supervisor does."""
    started = []

    def begin(program=PAUSE, mark="this"):
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            start_new_session=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "FRESHET_RUN": mark},
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def record(tmp_path):
    return tmp_path / "run.json"


def end(record, **options):
    return asyncio.run(end_leftovers(record, **options))


def test_a_recorded_process_is_ended(start, record):
    process = start()
    Record(record, "this").add("web", process.pid, signal.SIGTERM, members=True)
    assert end(record) == ["web"]
    assert process.wait(10) == -signal.SIGTERM
    assert not record.exists()


def test_one_that_will_not_end_is_killed(start, record):
    ignoring = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
    process = start(f"{ignoring}; signal.pause()")
    process.stdout.readline()
    Record(record, "this").add("web", process.pid, signal.SIGTERM, members=True)
    assert end(record, timeout_s=0.2) == ["web"]
    assert process.wait(10) == -signal.SIGKILL


def test_a_number_that_is_used_again_is_left_alone(start, record):
    process = start(mark="another")
    Record(record, "this").add("web", process.pid, signal.SIGTERM, members=True)
    content = json.loads(record.read_text())
    content["children"][0]["started"] -= 1
    record.write_text(json.dumps(content))
    assert end(record) == []
    assert identify(process.pid) is not None


def test_a_record_of_another_boot_names_nobody(start, record):
    process = start()
    Record(record, "this").add("web", process.pid, signal.SIGTERM, members=True)
    content = json.loads(record.read_text())
    content["boot"] = "another"
    record.write_text(json.dumps(content))
    assert end(record) == []
    assert identify(process.pid) is not None


def test_what_outlived_its_recorded_parent_is_ended(start, record):
    process = start(PARENT)
    orphan = int(process.stdout.readline())
    Record(record, "this").add("worker", process.pid, signal.SIGTERM, members=True)
    process.kill()
    process.wait()
    assert identify(orphan) is not None
    assert end(record) == ["worker"]
    assert identify(orphan) is None


def test_the_brokers_of_a_keeper_are_left_alone(start, record):
    process = start(PARENT)
    broker = int(process.stdout.readline())
    Record(record, "this").add("keeper", process.pid, signal.SIGTERM, members=False)
    assert end(record) == ["keeper"]
    assert identify(broker) is not None
    os.kill(broker, signal.SIGKILL)
    wait_until(lambda: identify(broker) is None, "the broker is gone")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"boot": 1}'])
def test_a_record_that_was_cut_short_names_nobody(record, content):
    record.write_text(content)
    assert end(record) == []
    assert not record.exists()


def test_a_process_is_found_by_its_working_folder(start, tmp_path):
    assert working_in(tmp_path, "python") == []
    process = start(
        f"import os, signal; os.chdir({str(tmp_path)!r}); print(1, flush=True);signal.pause()"
    )
    process.stdout.readline()
    name = Path(f"/proc/{process.pid}/exe").readlink().name
    assert working_in(tmp_path, name) == [process.pid]
    assert working_in(tmp_path, "postgres") == []

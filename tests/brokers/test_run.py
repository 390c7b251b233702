"""`python -m brokers run`: PID 1 of a pod, with real brokers."""

import os
import re
import resource
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.clients.servers import ROOT

READY = re.compile(r"ready bootstrap=(\S+) metrics=(\S+)")


@pytest.fixture
def settings(tmp_path):
    for folder in ("dfs", "bucket"):
        (tmp_path / folder).mkdir()
    path = tmp_path / "broker.toml"
    path.write_text(
        f"""
        [storage]
        dfs = "{tmp_path}/dfs"
        bucket = "{tmp_path}/bucket"
        metadata = "{tmp_path}/metadata.sqlite"
        [listener]
        kafka = "127.0.0.1:0"
        """
    )
    return path


@contextmanager
def running(settings, **options):
    """The process; its output can be read. It is killed at the end, and its broker with it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "brokers", "run", "--config", str(settings)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def metrics_of(process):
    """Of the broker that says next that it serves."""
    ready = READY.search(process.stdout.readline())
    assert ready, "it does not say that it serves"
    return ready[2]


def broker_of(process):
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (child,) = map(int, children)
    return child


def is_healthy(address):
    with urllib.request.urlopen(f"http://{address}/healthz", timeout=60) as answer:
        return answer.status == 200


def test_a_broker_that_dies_is_started_again(settings):
    with running(settings) as process:
        assert is_healthy(metrics_of(process))
        first = broker_of(process)
        for _ in range(3):
            os.kill(broker_of(process), signal.SIGKILL)
            assert is_healthy(metrics_of(process))
        assert broker_of(process) != first
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_stop_is_passed_on(settings, number):
    with running(settings) as process:
        metrics_of(process)
        process.send_signal(number)
        assert process.wait() == 0
        assert "started again" not in process.stderr.read()


def test_a_broker_that_another_took_over_from_leaves_it_time(settings):
    with running(settings) as process:
        metrics_of(process)
        command = [sys.executable, "-m", "brokers", "serve", "--config", str(settings)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                assert READY.search(other.stdout.readline().decode())
                said = iter(process.stderr.readline, "")
                assert any("(3); it is started again in 3.0 s" in line for line in said)
            finally:
                other.kill()
        # For who is gone meanwhile it takes over again.
        assert is_healthy(metrics_of(process))


STANDS_DOWN = "print('ready bootstrap=- metrics=- link=-', flush=True); raise SystemExit(3)"


def test_a_broker_that_stands_down_again_and_again_is_left_to_whoever_runs_it():
    runs = (
        "import sys\n"
        "from brokers import run\n"
        "run.STOOD_DOWN_PAUSE_S = 0.01\n"
        f'sys.exit(run.Runner([sys.executable, "-c", {STANDS_DOWN!r}]).run())\n'
    )
    command = [sys.executable, "-c", runs]
    ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 3
    assert ended.stdout.count("ready ") == 3
    assert ended.stderr.count("is started again") == 2
    assert "stood down 3 times in a row" in ended.stderr


def test_settings_that_are_refused_end_it(settings):
    settings.write_text("[storage]\ncolour = 'red'\n")
    with running(settings) as process:
        assert process.wait() == 2
        assert "storage.colour" in process.stderr.read()


def test_a_stop_while_it_waits_for_the_next_start_is_at_once(settings):
    # A metadata store that cannot be opened: the broker ends before it serves, again and again.
    (settings.parent / "metadata.sqlite").mkdir()
    with running(settings) as process:
        while "started again in 0.4 s" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait() in {0, 1}


def test_brokers_may_open_as_many_files_as_is_allowed(settings):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    low = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))  # noqa: E731
    with running(settings, preexec_fn=low) as process:
        metrics_of(process)
        limits = Path(f"/proc/{broker_of(process)}/limits").read_text()
        assert re.search(rf"Max open files\s+{most}\s", limits)


def test_children_of_others_are_waited_for(settings):
    """PID 1 inherits the children of whatever ends; here it does as a child subreaper."""
    held, release = os.pipe()
    become = (
        "import ctypes, os, sys\n"
        "ctypes.CDLL(None).prctl(36, 1)\n"  # PR_SET_CHILD_SUBREAPER
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.close(0)\n"
        f"        os.read({held}, 1)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "os.execv(sys.executable, sys.argv[1:])\n"
    )
    command = [sys.executable, "-m", "brokers", "run", "--config", str(settings)]
    process = subprocess.Popen(
        [sys.executable, "-c", become, *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(held,),
    )
    try:
        metrics_of(process)
        task = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        orphan = next(pid for pid in task.read_text().split() if int(pid) != _newest(task))
        os.close(held)
        os.close(release)
        while orphan in task.read_text().split():
            os.sched_yield()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0


def _newest(task):
    return max(map(int, task.read_text().split()))
